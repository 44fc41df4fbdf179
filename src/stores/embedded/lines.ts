import { admit } from '../../contract/admit.js'
import { EXCLUSIVE, MOST_AHEAD } from '../../contract/constants.js'
import { checkFences, nextFence } from '../../contract/fence.js'
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
} from '../../contract/store.js'
import { granted, type HeldRow, isHeld, latestEnd, newRow, viewOf } from './claim-row.js'
import { type Front, isEmpty, lineOf, liveRows, readFront, usedPermits } from './front.js'
import { heirsOf } from './heirs.js'
import type { ClaimRow, ClaimRows } from './rows.js'

export interface EmbeddedLinesContext {
  /** The store's monotonic milliseconds. */
  now(): number
  wallMs(): number
  /** Tells a client; delivered after the group of calls has become durable. */
  tell(client: string, news: Push): void
  /**
   * false: pushes do not reach the caller, so replies say how many wait ahead of it. Left out: they
   * do.
   */
  receivesPushes?(): boolean
}

type Fences = NonNullable<Beat['fences']>

/**
 * The line semantics of the store contract, for stores whose rows this process can change
 * atomically. Each method is one atomic step: remove the lapsed claims at the front, do the work,
 * promote.
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
    const now = this.#context.now()
    const front = this.#advance(resource, now)
    const mine = isEmpty(front) ? undefined : this.#find(resource, request.id, now)
    if (mine) return this.#answer(mine, front, now)
    if (request.adopts) return this.#adopt(client, request, request.adopts, now)

    const capacity = front.capacity ?? request.capacity
    if (!agreesOnCapacity(request, front, capacity))
      return { status: 'refused', reason: 'capacity', capacity }
    if (request.mode === 'steal') return this.#steal(client, request, front, now)

    if (!front.next && usedPermits(front) + request.permits <= capacity) {
      const hold = this.#newHold(client, request, now)
      this.#rows.append(hold)
      return granted(hold, now, false)
    }
    // If a claim waits already, the holders have been told.
    if (!front.next) this.#tellWanted(front.holds)
    if (request.mode === 'try') return { status: 'refused', reason: 'busy' }
    if (this.#isFull(request, now)) return { status: 'refused', reason: 'full' }
    const waiter = newRow(client, request, now, null, now + request.presenceMs)
    this.#rows.append(waiter)
    return this.#waiting(waiter, front.next ? front : { ...front, next: waiter }, now)
  }

  pulse(beats: readonly Beat[]): BeatReply[] {
    const now = this.#context.now()
    const wanted = new Set<string>()
    // Most beats are for a hold, which is read with the front of its line.
    const known = new Map<string, Map<string, ClaimRow>>()
    for (const resource of new Set(beats.map((beat) => beat.resource))) {
      const front = this.#advance(resource, now)
      if (front.next) wanted.add(resource)
      known.set(resource, new Map(front.holds.map((row) => [row.id, row])))
    }
    for (const beat of beats) {
      const ofLine = known.get(beat.resource)
      const row = ofLine?.get(beat.id) ?? this.#find(beat.resource, beat.id, now)
      if (row) ofLine?.set(beat.id, this.#refresh(row, beat, now))
    }
    // Only a beat that gave permits back can have made room for others.
    const fronts = new Map<string, Front>()
    for (const { resource, permits } of beats)
      if (permits !== undefined) {
        const front = this.#advance(resource, now)
        fronts.set(resource, front)
        if (!front.next) wanted.delete(resource)
      }
    const hasAdvanced = fronts.size > 0

    return beats.map((beat) => {
      const { resource, id } = beat
      const row = hasAdvanced ? this.#find(resource, id, now) : known.get(resource)?.get(id)
      if (!row) return { status: 'gone' }
      if (isHeld(row)) return { ...this.#held(row, beat, now), isWanted: wanted.has(resource) }
      const front = fronts.get(resource) ?? readFront(this.#rows, resource, now)
      fronts.set(resource, front)
      return this.#waiting(row, front, now)
    })
  }

  release(resource: string, id: string): boolean {
    const now = this.#context.now()
    const row = this.#find(resource, id, now)
    if (row) this.#rows.remove(row)
    this.#advance(resource, now)
    return row !== undefined
  }

  evict(resource: string, fence: number | null): ClaimView[] {
    const now = this.#context.now()
    const { holds } = this.#advance(resource, now)
    const evicted = holds.filter((row) => fence === null || row.fence === fence)
    this.#revoke(evicted)
    this.#advance(resource, now)
    return evicted.map((row) => viewOf(row, now))
  }

  cancel(resource: string, id: string): ClaimView[] {
    const now = this.#context.now()
    this.#advance(resource, now)
    const row = this.#find(resource, id, now)
    if (!row || isHeld(row)) return []
    this.#revoke([row])
    this.#advance(resource, now)
    return [viewOf(row, now)]
  }

  resize(resource: string, declared: number, capacity: number): void {
    const now = this.#context.now()
    this.#advance(resource, now)
    const line = [...liveRows(this.#rows, resource, now)]
    // The pin can go once every claim in the line declares this capacity.
    const isDeclared = declared === capacity && line.every((row) => row.capacity === capacity)
    this.#rows.setPin(resource, isDeclared ? null : { declared, capacity })
    // A waiter that wants more than the new capacity would block the line for good.
    this.#revoke(line.filter((row) => row.fence === null && row.permits > capacity))
    this.#advance(resource, now)
  }

  /**
   * Removes every lapsed claim of a line, not only those at its front. For lines that no client
   * uses.
   */
  sweep(resource: string): void {
    const now = this.#context.now()
    const lapsed = [...lineOf(this.#rows, resource)].filter((row) => row.expires <= now)
    for (const row of lapsed) this.#rows.remove(row)
    this.#advance(resource, now)
  }

  /** null: the line is empty, and nothing is pinned. */
  view(resource: string): LineView | null {
    const now = this.#context.now()
    const rows = [...liveRows(this.#rows, resource, now)]
    const pin = this.#rows.pin(resource)
    const capacity = pin?.capacity ?? rows[0]?.capacity
    if (capacity === undefined) return null
    const view = { resource, capacity, claims: rows.map((row) => viewOf(row, now)) }
    return pin ? { ...view, declared: pin.declared } : view
  }

  /** The next number of the store's counter: fences and versions come from the same one. */
  nextNumber(floor: number, block: number): number {
    const number = nextFence({ last: this.#rows.counter(), floor, wallMs: this.#context.wallMs(), block })
    this.#rows.setCounter(number + block - 1)
    return number
  }

  /** Removes the lapsed claims at the front of a line, and promotes the claims that fit. */
  #advance(resource: string, now: number): Front {
    const front = readFront(this.#rows, resource, now)
    const { next, capacity } = front
    if (!next || capacity === undefined || usedPermits(front) + next.permits > capacity) return front
    this.#promote(resource, capacity, now)
    return readFront(this.#rows, resource, now)
  }

  #promote(resource: string, capacity: number, now: number): void {
    for (const { row } of admit(places(liveRows(this.#rows, resource, now)), capacity)) {
      const heirs = heirsOf(this.#rows, row, capacity, now)
      const fence = this.nextNumber(row.floor, row.block + heirs.length)
      // The deadline stays the waiter's own: only its next pulse proves that it is alive and starts
      // the lease.
      this.#rows.update(row, { fence, since: now, expires: Math.min(row.expires, latestEnd(row, now)) })
      const news = { type: 'granted', resource, id: row.id, fence } as const
      this.#context.tell(row.client, heirs.length > 0 ? { ...news, heirs } : news)
    }
  }

  #refresh(row: ClaimRow, beat: Beat, now: number): ClaimRow {
    const change = isHeld(row)
      ? {
          expires: Math.max(row.expires, Math.min(now + beat.leaseMs, latestEnd(row, row.since))),
          permits: Math.min(row.permits, beat.permits ?? row.permits),
          block: Math.max(row.block, beat.block ?? 0),
          ...(beat.fences && this.#takeFences(row, beat.fences)),
        }
      : { expires: Math.max(row.expires, now + beat.presenceMs) }
    this.#rows.update(row, change)
    return { ...row, ...change }
  }

  /** What changes in the row; undefined: they are refused, or reserved already. */
  #takeFences(row: HeldRow, { first, count }: Fences): Pick<HeldRow, 'fence' | 'block'> | undefined {
    const counter = this.#rows.counter()
    // Since an exclusive claim was granted, no other claim has got a fence of its resource. The
    // counter may be higher because of other resources.
    const above = row.permits === EXCLUSIVE ? row.fence : counter
    if (first <= above) return undefined
    checkFences(first, count)
    this.#rows.setCounter(Math.max(counter, first + count - 1))
    return { fence: first, block: Math.max(row.block, count) }
  }

  #adopt(
    client: string,
    request: ClaimRequest,
    adopts: { id: string; fence: number },
    now: number,
  ): ClaimReply {
    const { resource } = request
    const old = this.#find(resource, adopts.id, now)
    // A hold that has shrunk since it was exported cannot give the permits that others have by now.
    if (!old || old.fence !== adopts.fence || request.permits > old.permits)
      return { status: 'refused', reason: 'gone' }
    const { permits, capacity } = old
    const hold = this.#newHold(client, { ...request, permits, capacity }, now)
    this.#tellLost(old)
    this.#rows.replace(old, hold)
    return granted(hold, now, readFront(this.#rows, resource, now).next !== undefined)
  }

  #steal(client: string, request: ClaimRequest, front: Front, now: number): ClaimReply {
    this.#revoke(front.holds)
    const hold = this.#newHold(client, request, now)
    this.#rows.prepend(hold)
    return granted(hold, now, this.#advance(request.resource, now).next !== undefined)
  }

  #newHold(client: string, request: ClaimRequest, now: number): HeldRow {
    const { floor, block, leaseMs, maxHoldMs } = request
    const endsInMs = maxHoldMs === null ? leaseMs : Math.min(leaseMs, maxHoldMs)
    return newRow(client, request, now, this.nextNumber(floor, block), now + endsInMs)
  }

  /** Only a holder with a block of fences passes its hold on, so only that one has to stop soon. */
  #tellWanted(holds: readonly ClaimRow[]): void {
    for (const { client, resource, id, block } of holds)
      if (block > 1) this.#context.tell(client, { type: 'wanted', resource, id })
  }

  #tellLost({ client, resource, id }: ClaimRow): void {
    this.#context.tell(client, { type: 'lost', resource, id })
  }

  #revoke(rows: readonly ClaimRow[]): void {
    for (const row of rows) {
      this.#rows.remove(row)
      this.#tellLost(row)
    }
  }

  #find(resource: string, id: string, now: number): ClaimRow | undefined {
    const row = this.#rows.get(resource, id)
    if (!row || row.expires > now) return row
    this.#rows.remove(row)
    return undefined
  }

  #answer(row: ClaimRow, front: Front, now: number): ClaimReply {
    return isHeld(row) ? granted(row, now, front.next !== undefined) : this.#waiting(row, front, now)
  }

  #held({ fence, expires }: HeldRow, { block, fences }: Beat, now: number): Held {
    const held: Held = { status: 'held', fence, leaseMs: expires - now }
    if (fences && fences.first !== fence) return { ...held, newest: this.#rows.counter() }
    return block === undefined ? held : { ...held, block: this.nextNumber(0, block) }
  }

  #waiting(row: ClaimRow, front: Front, now: number): Waiting {
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
      ...(this.#context.receivesPushes?.() === false ? { ahead: this.#ahead(row, now) } : {}),
    }
  }

  #ahead(row: ClaimRow, now: number): number {
    return this.#countWaiters(row.resource, row.id, MOST_AHEAD, now)
  }

  /** Whether as many claims wait as the request allows. */
  #isFull({ resource, id, maxWaiters }: ClaimRequest, now: number): boolean {
    return maxWaiters !== undefined && this.#countWaiters(resource, id, maxWaiters, now) >= maxWaiters
  }

  /** How many claims wait before that one, or at all if it is not in line; counted up to `most`. */
  #countWaiters(resource: string, before: string, most: number, now: number): number {
    let count = 0
    for (const { id, fence } of liveRows(this.#rows, resource, now)) {
      if (id === before || count >= most) break
      if (fence === null) count++
    }
    return count
  }
}

function agreesOnCapacity(request: ClaimRequest, front: Front, capacity: number): boolean {
  const isKnown = request.capacity === capacity || request.capacity === front.pin?.declared
  return isKnown && request.permits <= capacity
}

function* places(rows: Iterable<ClaimRow>): Iterable<{ permits: number; granted: boolean; row: ClaimRow }> {
  for (const row of rows) yield { permits: row.permits, granted: row.fence !== null, row }
}
