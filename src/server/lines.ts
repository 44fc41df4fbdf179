import { EXCLUSIVE } from '../contract/constants.js'
import type { ClaimView, LineView } from '../contract/store.js'
import { parseInfo } from '../primitives/views.js'
import type { Party, ResourceDetail, ResourceKind, ResourceSummary } from './shapes.js'

/** A renewal is news only if it moves the end of the lease by more than two looks differ. */
const SAME_END_MS = 500

/** A claim as the last look found it. The same object stays while nothing changes. */
export interface SeenClaim {
  readonly id: string
  readonly permits: number
  /** null: it waits. */
  readonly fence: number | null
  readonly info: string
  readonly sinceMs: number
  readonly expiresMs: number
}

/** A line as the last look found it. The same object stays while nothing changes. */
export interface SeenLine {
  readonly name: string
  readonly capacity: number
  /** In order of the line: holds first. */
  readonly claims: readonly SeenClaim[]
  readonly holders: number
  readonly changedMs: number
}

/** What a look shows, with all that stayed the same taken from the look before. */
export function seenLine(line: LineView, wallMs: number, before?: SeenLine): SeenLine {
  const known = before?.claims ?? []
  let byId: Map<string, SeenClaim> | null = null
  const find = (id: string, index: number): SeenClaim | undefined => {
    if (known[index]?.id === id) return known[index]
    // A line moves up when its first claim leaves: then no index fits, and a search would be
    // quadratic.
    byId ??= new Map(known.map((claim) => [claim.id, claim]))
    return byId.get(id)
  }
  const claims = line.claims.map((view, index) => seenClaim(view, wallMs, find(view.id, index)))
  const isSame =
    before?.capacity === line.capacity &&
    claims.length === known.length &&
    claims.every((claim, index) => claim === known[index])
  if (before && isSame) return before
  return {
    name: line.resource,
    capacity: line.capacity,
    claims,
    holders: claims.reduce((sum, { fence }) => sum + (fence === null ? 0 : 1), 0),
    changedMs: before ? wallMs : claims.reduce((latest, { sinceMs }) => Math.max(latest, sinceMs), 0),
  }
}

/** A line in which nobody is: what the resource was is not known any more. */
export function emptyLine(name: string): SeenLine {
  return { name, capacity: EXCLUSIVE, claims: [], holders: 0, changedMs: 0 }
}

function seenClaim(view: ClaimView, wallMs: number, before?: SeenClaim): SeenClaim {
  const { id, permits, fence, info } = view
  const isSame = before?.fence === fence && before.permits === permits && before.info === info
  const expiresMs = wallMs + view.expiresInMs
  if (before && isSame && Math.abs(before.expiresMs - expiresMs) < SAME_END_MS) return before
  // The age counts from the look, so the start would move by some milliseconds with each.
  const sinceMs = before && isSame ? before.sinceMs : wallMs - view.ageMs
  return { id, permits, fence, info, sinceMs, expiresMs }
}

export function partyOf(claim: SeenClaim): Party {
  const { id, permits, fence, sinceMs, expiresMs } = claim
  return {
    id,
    ...parseInfo(claim),
    permits,
    isWriter: permits === EXCLUSIVE,
    since: iso(sinceMs),
    expires: iso(expiresMs),
    fence,
  }
}

export function summaryOf(line: SeenLine, nowMs: number): ResourceSummary {
  const { name, claims, holders } = line
  const first = claims[0]
  const holder = first && first.fence !== null ? first : null
  const oldest = claims[holders]
  return {
    name,
    kind: kindOf(line),
    capacity: line.capacity === EXCLUSIVE ? null : line.capacity,
    used: usedOf(line),
    holders,
    waiters: claims.length - holders,
    readers: line.capacity === EXCLUSIVE && holder !== null && holder.permits < EXCLUSIVE,
    oldestWaitMs: oldest ? Math.max(0, Math.round(nowMs - oldest.sinceMs)) : null,
    heldMs: holder ? Math.max(0, Math.round(nowMs - holder.sinceMs)) : null,
    holder: holder && partyOf(holder),
    changedAt: iso(line.changedMs),
  }
}

/** The line with one page of its waiters; the timeline comes from the poller. */
export function detailOf(
  line: SeenLine,
  nowMs: number,
  page: { readonly offset: number; readonly limit: number },
): Omit<ResourceDetail, 'timeline'> {
  const { name, capacity, claims, holders } = line
  const from = holders + page.offset
  return {
    name,
    kind: kindOf(line),
    capacity: capacity === EXCLUSIVE ? null : capacity,
    asOf: iso(nowMs),
    used: usedOf(line),
    holders: claims.slice(0, holders).map(partyOf),
    waiters: claims.slice(from, from + page.limit).map(partyOf),
    waitersTotal: claims.length - holders,
    offset: page.offset,
  }
}

function usedOf({ capacity, claims, holders }: SeenLine): number {
  if (capacity === EXCLUSIVE) return holders
  let used = 0
  for (const { fence, permits } of claims) if (fence !== null) used += permits
  return used
}

const KIND_OF_PREFIX = /^(election|once|barrier):/

export function kindOf({ name, capacity }: Pick<SeenLine, 'name' | 'capacity'>): ResourceKind {
  const [, special] = KIND_OF_PREFIX.exec(name) ?? []
  return (special as ResourceKind | undefined) ?? (capacity === EXCLUSIVE ? 'lock' : 'semaphore')
}

/** The last moment that RFC 3339 can write. A lease may end later: any client chooses its own. */
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z')

export function iso(ms: number): string {
  return new Date(Math.min(Math.max(ms, 0), LAST_MS)).toISOString()
}
