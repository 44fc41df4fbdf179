import type { ClaimRow, ClaimRows, Pin } from './rows.js'

/** The part of a line that decides: its holds and the first claim that waits. */
export interface Front {
  readonly holds: readonly ClaimRow[]
  readonly next: ClaimRow | undefined
  readonly pin: Pin | undefined
  /** undefined: the line is empty and nothing is pinned, so the next claim decides. */
  readonly capacity: number | undefined
}

/**
 * The front of a line without claims. One for all: a free lock is claimed without making a new one.
 */
const FREE: Front = { holds: [], next: undefined, pin: undefined, capacity: undefined }

/** Reads a line up to the first claim that waits, and removes the lapsed claims before it. */
export function readFront(rows: ClaimRows, resource: string, now: number): Front {
  const pin = rows.pin(resource)
  const first = rows.first(resource)
  if (first === undefined) return pin === undefined ? FREE : { ...FREE, pin, capacity: pin.capacity }
  const holds: ClaimRow[] = []
  const lapsed: ClaimRow[] = []
  let next: ClaimRow | undefined
  for (const row of allRows(rows, first)) {
    if (row.expires <= now) lapsed.push(row)
    else if (row.fence !== null) holds.push(row)
    else {
      next = row
      break
    }
  }
  for (const row of lapsed) rows.remove(row)
  return { holds, next, pin, capacity: pin?.capacity ?? (holds[0] ?? next)?.capacity }
}

export function isEmpty(front: Front): boolean {
  return front.holds.length === 0 && front.next === undefined
}

export function usedPermits({ holds }: Front): number {
  let used = 0
  for (const hold of holds) used += hold.permits
  return used
}

/** The claims of a line in order, without those that have lapsed but are still in it. */
export function* liveRows(rows: ClaimRows, resource: string, now: number): Iterable<ClaimRow> {
  for (const row of lineOf(rows, resource)) if (row.expires > now) yield row
}

export function lineOf(rows: ClaimRows, resource: string): Iterable<ClaimRow> {
  const first = rows.first(resource)
  return first === undefined ? [] : allRows(rows, first)
}

function* allRows(rows: ClaimRows, first: ClaimRow): Iterable<ClaimRow> {
  yield first
  yield* rows.behindFirst(first)
}
