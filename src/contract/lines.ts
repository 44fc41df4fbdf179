import { admit } from './admit.js'
import { nextFence } from './fence.js'
import type { Pin, Row, Rows } from './rows.js'
import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClaimView,
  Held,
  LineView,
  Push,
  Waiting,
} from './store.js'

/** What the lines need from outside. */
export interface LinesContext {
  /** The store's monotonic milliseconds. */
  now(): number
  wallMs(): number
  /** Tells a client; delivered after the group of calls has become durable. */
  tell(client: string, news: Push): void
}

/**
 * The line semantics of the store contract, once, for every store whose rows this process can change atomically.
 * Each method is one atomic step: drop the lapsed, do the work, promote.
 */
export class Lines {
  readonly #rows: Rows
  readonly #context: LinesContext

  constructor(rows: Rows, context: LinesContext) {
    this.#rows = rows
    this.#context = context
  }

  claim(client: string, request: ClaimRequest): ClaimReply {
    const { resource } = request
    this.#tidy(resource)
    const mine = this.#rows.get(resource, request.id)
    if (mine) return this.#answer(mine)
    if (request.adopts) return this.#adopt(client, request, request.adopts)

    const front = this.#front(resource)
    const capacity = front.capacity ?? request.capacity
    if (!agreesOnCapacity(request, front, capacity))
      return { status: 'refused', reason: 'capacity', capacity }
    if (request.steal === true) return this.#steal(client, request, front)

    const row = waitingRow(client, request, this.#context.now())
    const used = front.holds.reduce((sum, hold) => sum + hold.permits, 0)
    if (!front.next && used + row.permits <= capacity)
      return this.#grantNew(row, request, (hold) => this.#rows.append(hold))
    if (!request.queue) return { status: 'refused', reason: 'busy' }
    this.#rows.append(row)
    return this.#waiting(row, front.next ? front : { ...front, next: row })
  }

  pulse(beats: readonly Beat[]): BeatReply[] {
    const resources = new Set(beats.map((beat) => beat.resource))
    for (const resource of resources) this.#tidy(resource)
    for (const beat of beats) this.#refresh(beat)
    // Only a beat that gave permits back can have made room since the lines were tidied.
    for (const beat of beats) if (beat.permits !== undefined) this.#promote(beat.resource)

    const fronts = new Map<string, Front>()
    return beats.map((beat) => {
      const row = this.#rows.get(beat.resource, beat.id)
      if (!row) return { status: 'gone' }
      if (row.fence !== null) return this.#held(row, row.fence, beat.block)
      const front = fronts.get(beat.resource) ?? this.#front(beat.resource)
      fronts.set(beat.resource, front)
      return this.#waiting(row, front)
    })
  }

  release(resource: string, id: string): boolean {
    this.#rows.dropLapsed(resource, this.#context.now())
    const row = this.#rows.get(resource, id)
    if (row) this.#rows.remove(row)
    this.#promote(resource)
    return row !== undefined
  }

  evict(resource: string, fence: number | null): ClaimView[] {
    this.#tidy(resource)
    const robbed = this.#front(resource).holds.filter((row) => fence === null || row.fence === fence)
    const views = robbed.map((row) => this.#view(row))
    this.#rob(robbed)
    this.#promote(resource)
    return views
  }

  resize(resource: string, declared: number, capacity: number): void {
    this.#tidy(resource)
    const line = [...this.#rows.line(resource)]
    // Nothing to remember once everybody in the line declares it anyway; until then the line would still go by the old one.
    const isDeclared = declared === capacity && line.every((row) => row.capacity === capacity)
    this.#rows.setPin(resource, isDeclared ? null : { declared, capacity })
    // A waiter that wants more than there will ever be would bar the line for good: send it away to be told so.
    this.#rob(line.filter((row) => row.fence === null && row.permits > capacity))
    this.#promote(resource)
  }

  view(resource: string): LineView | null {
    const now = this.#context.now()
    const rows = [...this.#rows.line(resource)].filter((row) => row.expires > now)
    const first = rows[0]
    if (!first) return null
    return {
      resource,
      capacity: this.#rows.pin(resource)?.capacity ?? first.capacity,
      claims: rows.map((row) => this.#view(row)),
    }
  }

  /** The next number of the store's counter: fences and versions come from the same one. */
  nextNumber(floor: number, block: number): number {
    const number = nextFence({ last: this.#rows.counter(), floor, wallMs: this.#context.wallMs(), block })
    this.#rows.bump(number + block - 1)
    return number
  }

  #tidy(resource: string): void {
    if (this.#rows.dropLapsed(resource, this.#context.now())) this.#promote(resource)
  }

  #promote(resource: string): void {
    const { next, capacity } = this.#front(resource)
    if (!next || capacity === undefined) return
    const now = this.#context.now()
    for (const { row } of admit(places(this.#rows.line(resource)), capacity)) {
      const fence = this.nextNumber(row.floor, row.block)
      // The deadline stays the waiter's own: only its next pulse proves that it is alive and starts the lease.
      this.#rows.update(row, { fence, since: now, expires: Math.min(row.expires, capAt(row, now)) })
      this.#context.tell(row.client, { type: 'granted', resource, id: row.id, fence })
    }
  }

  #refresh(beat: Beat): void {
    const row = this.#rows.get(beat.resource, beat.id)
    if (!row) return
    const now = this.#context.now()
    if (row.fence === null) {
      this.#rows.update(row, { expires: Math.max(row.expires, now + beat.presenceMs) })
      return
    }
    const expires = Math.max(row.expires, Math.min(now + beat.leaseMs, capAt(row, row.since)))
    this.#rows.update(row, { expires, permits: Math.min(row.permits, beat.permits ?? row.permits) })
  }

  #adopt(client: string, request: ClaimRequest, adopts: { id: string; fence: number }): ClaimReply {
    const old = this.#rows.get(request.resource, adopts.id)
    if (!old || old.fence !== adopts.fence) return { status: 'refused', reason: 'gone' }
    // The place is taken over as it is: asking for other permits here would be a way around the line.
    const row = {
      ...waitingRow(client, request, this.#context.now()),
      permits: old.permits,
      capacity: old.capacity,
    }
    this.#context.tell(old.client, { type: 'lost', resource: old.resource, id: old.id })
    return this.#grantNew(row, request, (granted) => this.#rows.replace(old, granted))
  }

  #steal(client: string, request: ClaimRequest, front: Front): ClaimReply {
    this.#rob(front.holds)
    const row = waitingRow(client, request, this.#context.now())
    const reply = this.#grantNew(row, request, (hold) => this.#rows.prepend(hold))
    this.#promote(request.resource)
    return reply
  }

  #grantNew(row: Row, request: ClaimRequest, enter: (row: Row) => void): ClaimReply {
    const fence = this.nextNumber(request.floor, request.block)
    const expires = Math.min(row.since + request.leaseMs, capAt(row, row.since))
    enter({ ...row, fence, expires })
    return { status: 'granted', fence, leaseMs: expires - row.since }
  }

  #rob(rows: readonly Row[]): void {
    for (const row of rows) {
      this.#rows.remove(row)
      this.#context.tell(row.client, { type: 'lost', resource: row.resource, id: row.id })
    }
  }

  /** Reads a line as far as the first claim that waits. */
  #front(resource: string): Front {
    const pin = this.#rows.pin(resource)
    const holds: Row[] = []
    let next: Row | undefined
    for (const row of this.#rows.line(resource)) {
      if (row.fence === null) {
        next = row
        break
      }
      holds.push(row)
    }
    return { holds, next, pin, capacity: pin?.capacity ?? (holds[0] ?? next)?.capacity }
  }

  #answer(row: Row): ClaimReply {
    if (row.fence === null) return this.#waiting(row, this.#front(row.resource))
    return { status: 'granted', fence: row.fence, leaseMs: row.expires - this.#context.now() }
  }

  #held(row: Row, fence: number, block: number | undefined): Held {
    const held: Held = { status: 'held', fence, leaseMs: row.expires - this.#context.now() }
    return block === undefined ? held : { ...held, block: this.nextNumber(0, block) }
  }

  #waiting(row: Row, front: Front): Waiting {
    const now = this.#context.now()
    const isNext = row.id === front.next?.id
    const freeInMs =
      isNext && front.holds.length > 0
        ? front.holds.reduce((first, hold) => Math.min(first, hold.expires), Infinity) - now
        : null
    return {
      status: 'waiting',
      presenceMs: row.expires - now,
      isNext,
      freeInMs,
      grantsAbove: this.#rows.counter(),
    }
  }

  #view(row: Row): ClaimView {
    const now = this.#context.now()
    const { id, permits, fence, info } = row
    return { id, permits, fence, info, ageMs: now - row.since, expiresInMs: row.expires - now }
  }
}

/** The part of a line that decides: its holds and the first claim that waits. */
interface Front {
  readonly holds: readonly Row[]
  readonly next: Row | undefined
  readonly pin: Pin | undefined
  /** undefined: the line is empty and nothing is pinned, so the next claim decides. */
  readonly capacity: number | undefined
}

function agreesOnCapacity(request: ClaimRequest, front: Front, capacity: number): boolean {
  const isKnown = request.capacity === capacity || request.capacity === front.pin?.declared
  return isKnown && request.permits <= capacity
}

function waitingRow(client: string, request: ClaimRequest, now: number): Row {
  const { resource, id, permits, capacity, maxHoldMs, floor, block, info } = request
  const expires = now + request.presenceMs
  return {
    resource,
    id,
    client,
    permits,
    capacity,
    fence: null,
    expires,
    maxHoldMs,
    floor,
    block,
    since: now,
    info,
  }
}

/** The latest moment at which a hold that was granted at `granted` may end. */
function capAt(row: Row, granted: number): number {
  return row.maxHoldMs === null ? Infinity : granted + row.maxHoldMs
}

function* places(line: Iterable<Row>): Iterable<{ permits: number; granted: boolean; row: Row }> {
  for (const row of line) yield { permits: row.permits, granted: row.fence !== null, row }
}
