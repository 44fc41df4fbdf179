import { admit } from '../../contract/admit.js'
import { EXCLUSIVE, MOST_AHEAD, MOST_HEIRS } from '../../contract/constants.js'
import { nextFence } from '../../contract/fence.js'
import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClaimView,
  Granted,
  Held,
  LineView,
  Push,
  Waiting,
} from '../../contract/store.js'
import type { ClaimRow, ClaimRows, Pin } from './rows.js'

/** What the lines need from outside. */
export interface EmbeddedLinesContext {
  /** The store's monotonic milliseconds. */
  now(): number
  wallMs(): number
  /** Tells a client; delivered after the group of calls has become durable. */
  tell(client: string, news: Push): void
  /** false: the caller would not hear what it is told, so it learns how many wait ahead of it. Left out: it hears. */
  isHeard?(): boolean
}

/**
 * The line semantics of the store contract, once, for every store whose rows this process can change atomically.
 * Each method is one atomic step: drop the lapsed at the front, do the work, promote.
 */
export class EmbeddedLines {
  readonly #rows: ClaimRows
  readonly #context: EmbeddedLinesContext

  constructor(rows: ClaimRows, context: EmbeddedLinesContext) {
    this.#rows = rows
    this.#context = context
  }

  claim(client: string, request: ClaimRequest): ClaimReply {
    const { resource } = request
    const front = this.#settle(resource)
    const mine = isEmpty(front) ? undefined : this.#find(resource, request.id)
    if (mine) return this.#answer(mine, front)
    if (request.adopts) return this.#adopt(client, request, request.adopts)

    const capacity = front.capacity ?? request.capacity
    if (!agreesOnCapacity(request, front, capacity))
      return { status: 'refused', reason: 'capacity', capacity }
    if (request.mode === 'steal') return this.#steal(client, request, front)

    const row = waitingRow(client, request, this.#context.now())
    if (!front.next && used(front) + row.permits <= capacity)
      return this.#grantNew(row, request, (hold) => this.#rows.append(hold), false)
    if (request.mode === 'try') return { status: 'refused', reason: 'busy' }
    this.#rows.append(row)
    if (front.next) return this.#waiting(row, front)
    this.#tellWanted(front.holds)
    return this.#waiting(row, { ...front, next: row })
  }

  pulse(beats: readonly Beat[]): BeatReply[] {
    const wanted = new Set<string>()
    // Most beats are for a hold, which is read with the front of its line.
    const known = new Map<string, Map<string, ClaimRow>>()
    for (const resource of new Set(beats.map((beat) => beat.resource))) {
      const front = this.#settle(resource)
      if (front.next) wanted.add(resource)
      known.set(resource, new Map(front.holds.map((row) => [row.id, row])))
    }
    for (const beat of beats) {
      const ofLine = known.get(beat.resource)
      const row = ofLine?.get(beat.id) ?? this.#find(beat.resource, beat.id)
      if (row) ofLine?.set(beat.id, this.#refresh(row, beat))
    }
    // Only a beat that gave permits back can have made room since the lines were settled.
    const fronts = new Map<string, Front>()
    for (const { resource, permits } of beats)
      if (permits !== undefined) {
        const front = this.#settle(resource)
        fronts.set(resource, front)
        if (!front.next) wanted.delete(resource)
      }
    const isSettledAnew = fronts.size > 0

    return beats.map(({ resource, id, block }) => {
      const row = isSettledAnew ? this.#find(resource, id) : known.get(resource)?.get(id)
      if (!row) return { status: 'gone' }
      if (row.fence !== null) return { ...this.#held(row, row.fence, block), isWanted: wanted.has(resource) }
      const front = fronts.get(resource) ?? this.#front(resource)
      fronts.set(resource, front)
      return this.#waiting(row, front)
    })
  }

  release(resource: string, id: string): boolean {
    const row = this.#find(resource, id)
    if (row) this.#rows.remove(row)
    this.#settle(resource)
    return row !== undefined
  }

  evict(resource: string, fence: number | null): ClaimView[] {
    const { holds } = this.#settle(resource)
    const robbed = holds.filter((row) => fence === null || row.fence === fence)
    const views = robbed.map((row) => this.#view(row))
    this.#rob(robbed)
    this.#settle(resource)
    return views
  }

  resize(resource: string, declared: number, capacity: number): void {
    this.#settle(resource)
    const line = [...this.#live(resource)]
    // Nothing to remember once everybody in the line declares it anyway; until then the line would still go by the old one.
    const isDeclared = declared === capacity && line.every((row) => row.capacity === capacity)
    this.#rows.setPin(resource, isDeclared ? null : { declared, capacity })
    // A waiter that wants more than there will ever be would bar the line for good: send it away to be told so.
    this.#rob(line.filter((row) => row.fence === null && row.permits > capacity))
    this.#settle(resource)
  }

  /** Drops every lapsed claim of a line, also behind the ones that decide. For lines that nobody else tidies. */
  sweep(resource: string): void {
    const lapsed: ClaimRow[] = []
    for (const row of this.#rows.line(resource)) if (row.expires <= this.#context.now()) lapsed.push(row)
    for (const row of lapsed) this.#rows.remove(row)
    this.#settle(resource)
  }

  /** null: nobody is in it, and nothing is pinned. */
  view(resource: string): LineView | null {
    const rows = [...this.#live(resource)]
    const capacity = this.#rows.pin(resource)?.capacity ?? rows[0]?.capacity
    if (capacity === undefined) return null
    return {
      resource,
      capacity,
      claims: rows.map((row) => this.#view(row)),
    }
  }

  /** The next number of the store's counter: fences and versions come from the same one. */
  nextNumber(floor: number, block: number): number {
    const number = nextFence({ last: this.#rows.counter(), floor, wallMs: this.#context.wallMs(), block })
    this.#rows.bump(number + block - 1)
    return number
  }

  /** Drops the lapsed claims at the front of a line, and promotes. Every call begins or ends with it. */
  #settle(resource: string): Front {
    const front = this.#front(resource)
    const { next, capacity } = front
    if (!next || capacity === undefined || used(front) + next.permits > capacity) return front
    this.#promote(resource, capacity)
    return this.#front(resource)
  }

  #promote(resource: string, capacity: number): void {
    const now = this.#context.now()
    for (const { row } of admit(places(this.#live(resource)), capacity)) {
      const heirs = this.#heirsOf(row, capacity)
      const fence = this.nextNumber(row.floor, row.block + heirs.length)
      // The deadline stays the waiter's own: only its next pulse proves that it is alive and starts the lease.
      this.#rows.update(row, { fence, since: now, expires: Math.min(row.expires, capAt(row, now)) })
      const news = { type: 'granted', resource, id: row.id, fence } as const
      this.#context.tell(row.client, heirs.length > 0 ? { ...news, heirs } : news)
    }
  }

  /** Those of the same client right behind a claim that is about to hold all of a lock, as long as they ask for the same in the same words. */
  #heirsOf(first: ClaimRow, capacity: number): string[] {
    const heirs: string[] = []
    const isPlain = first.block === 1 && first.maxHoldMs === null
    if (first.permits !== EXCLUSIVE || capacity !== EXCLUSIVE || !isPlain) return heirs
    let isBehind = false
    for (const row of this.#live(first.resource)) {
      if (isBehind && !(isAlike(row, first) && row.floor <= this.#rows.counter())) break
      if (isBehind) heirs.push(row.id)
      if (heirs.length >= MOST_HEIRS) break
      isBehind ||= row.id === first.id
    }
    return heirs
  }

  #refresh(row: ClaimRow, beat: Beat): ClaimRow {
    const now = this.#context.now()
    const change =
      row.fence === null
        ? { expires: Math.max(row.expires, now + beat.presenceMs) }
        : {
            expires: Math.max(row.expires, Math.min(now + beat.leaseMs, capAt(row, row.since))),
            permits: Math.min(row.permits, beat.permits ?? row.permits),
            block: Math.max(row.block, beat.block ?? 0),
          }
    this.#rows.update(row, change)
    return { ...row, ...change }
  }

  #adopt(client: string, request: ClaimRequest, adopts: { id: string; fence: number }): ClaimReply {
    const old = this.#find(request.resource, adopts.id)
    // The place is taken over as it is. What was passed on before it shrank tells of permits that are others' by now.
    const isAsPassed = old?.fence === adopts.fence && request.permits <= old.permits
    if (!old || !isAsPassed) return { status: 'refused', reason: 'gone' }
    const row = {
      ...waitingRow(client, request, this.#context.now()),
      permits: old.permits,
      capacity: old.capacity,
    }
    this.#context.tell(old.client, { type: 'lost', resource: old.resource, id: old.id })
    const isWanted = this.#front(request.resource).next !== undefined
    return this.#grantNew(row, request, (granted) => this.#rows.replace(old, granted), isWanted)
  }

  #steal(client: string, request: ClaimRequest, front: Front): ClaimReply {
    this.#rob(front.holds)
    const row = waitingRow(client, request, this.#context.now())
    const reply = this.#grantNew(row, request, (hold) => this.#rows.prepend(hold), true)
    return { ...reply, isWanted: this.#settle(request.resource).next !== undefined }
  }

  #grantNew(
    row: ClaimRow,
    request: ClaimRequest,
    enter: (row: ClaimRow) => void,
    isWanted: boolean,
  ): Granted {
    const fence = this.nextNumber(request.floor, request.block)
    const expires = Math.min(row.since + request.leaseMs, capAt(row, row.since))
    enter({ ...row, fence, expires })
    return { status: 'granted', fence, leaseMs: expires - row.since, isWanted }
  }

  /** Those who pass their hold on should stop soon. */
  #tellWanted(holds: readonly ClaimRow[]): void {
    for (const { client, resource, id, block } of holds)
      if (block > 1) this.#context.tell(client, { type: 'wanted', resource, id })
  }

  #rob(rows: readonly ClaimRow[]): void {
    for (const row of rows) {
      this.#rows.remove(row)
      this.#context.tell(row.client, { type: 'lost', resource: row.resource, id: row.id })
    }
  }

  /** Reads a line as far as the first claim that waits, and drops the lapsed ones that it meets. */
  #front(resource: string): Front {
    const now = this.#context.now()
    const holds: ClaimRow[] = []
    const lapsed: ClaimRow[] = []
    let next: ClaimRow | undefined
    for (const row of this.#rows.line(resource)) {
      if (row.expires <= now) lapsed.push(row)
      else if (row.fence !== null) holds.push(row)
      else {
        next = row
        break
      }
    }
    for (const row of lapsed) this.#rows.remove(row)
    const pin = this.#rows.pin(resource)
    return { holds, next, pin, capacity: pin?.capacity ?? (holds[0] ?? next)?.capacity }
  }

  /** Those further back that have lapsed are passed over, and dropped when they come to the front. */
  *#live(resource: string): Iterable<ClaimRow> {
    const now = this.#context.now()
    for (const row of this.#rows.line(resource)) if (row.expires > now) yield row
  }

  #find(resource: string, id: string): ClaimRow | undefined {
    const row = this.#rows.get(resource, id)
    if (!row || row.expires > this.#context.now()) return row
    this.#rows.remove(row)
    return undefined
  }

  #answer(row: ClaimRow, front: Front): ClaimReply {
    if (row.fence === null) return this.#waiting(row, front)
    const leaseMs = row.expires - this.#context.now()
    return { status: 'granted', fence: row.fence, leaseMs, isWanted: front.next !== undefined }
  }

  #held(row: ClaimRow, fence: number, block: number | undefined): Held {
    const held: Held = { status: 'held', fence, leaseMs: row.expires - this.#context.now() }
    return block === undefined ? held : { ...held, block: this.nextNumber(0, block) }
  }

  #waiting(row: ClaimRow, front: Front): Waiting {
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
      ...(this.#context.isHeard?.() === false ? { ahead: this.#ahead(row) } : {}),
    }
  }

  #ahead(row: ClaimRow): number {
    let ahead = 0
    for (const { id, fence } of this.#live(row.resource)) {
      if (id === row.id || ahead >= MOST_AHEAD) break
      if (fence === null) ahead++
    }
    return ahead
  }

  #view(row: ClaimRow): ClaimView {
    const now = this.#context.now()
    const { id, permits, fence, info } = row
    return { id, permits, fence, info, ageMs: now - row.since, expiresInMs: row.expires - now }
  }
}

/** Whether both ask for the same. What differs in its words is not passed on, and would be read and kept in mind for nothing. */
function isAlike(row: ClaimRow, first: ClaimRow): boolean {
  const isSame = row.client === first.client && row.info === first.info
  return isSame && row.permits === first.permits && row.block === 1 && row.maxHoldMs === null
}

/** The part of a line that decides: its holds and the first claim that waits. */
interface Front {
  readonly holds: readonly ClaimRow[]
  readonly next: ClaimRow | undefined
  readonly pin: Pin | undefined
  /** undefined: the line is empty and nothing is pinned, so the next claim decides. */
  readonly capacity: number | undefined
}

function isEmpty(front: Front): boolean {
  return front.holds.length === 0 && !front.next
}

function used(front: Front): number {
  return front.holds.reduce((sum, hold) => sum + hold.permits, 0)
}

function agreesOnCapacity(request: ClaimRequest, front: Front, capacity: number): boolean {
  const isKnown = request.capacity === capacity || request.capacity === front.pin?.declared
  return isKnown && request.permits <= capacity
}

function waitingRow(client: string, request: ClaimRequest, now: number): ClaimRow {
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
function capAt(row: ClaimRow, granted: number): number {
  return row.maxHoldMs === null ? Infinity : granted + row.maxHoldMs
}

function* places(line: Iterable<ClaimRow>): Iterable<{ permits: number; granted: boolean; row: ClaimRow }> {
  for (const row of line) yield { permits: row.permits, granted: row.fence !== null, row }
}
