import type { Env } from '../base/env.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type { ClaimView, LineView } from '../contract/store.js'

/** A claim that waits in line. */
export interface WaiterView {
  /** Names the claim, for `cancelWaiter`. */
  id: string
  /** The explicit owner, or the id of the acquisition. */
  owner: string
  /** The host that it comes from; '' if unknown. */
  host: string
  /** The process id on that host; 0 if unknown. */
  pid: number
  /** The `label` that it was acquired with, if any. */
  label: string | null
  /** How many permits it has, or asks for; a mutex or writer has 2^30. */
  permits: number
  /** When it began to wait, or to hold. */
  since: Date
  /** When it lapses if nothing renews it. */
  expires: Date
}

/** A claim that holds. */
export interface HolderView extends WaiterView {
  /** The number of the hold, for `breakHold`. */
  fence: number
}

/** A resource with at least one claim. */
export interface ResourceView {
  /** The name of the resource. */
  name: string
  /** `'lock'`: a mutex, a read-write lock, or something that is made of one. */
  kind: 'lock' | 'semaphore'
  /** How many permits there are; a mutex or read-write lock has 2^30. */
  capacity: number
  /** The present holders. */
  holders: HolderView[]
  /** The waiters, in the order in which they will be served. */
  waiters: WaiterView[]
}

export function resourceView(line: LineView, env: Env): ResourceView {
  const holders: HolderView[] = []
  const waiters: WaiterView[] = []
  for (const claim of line.claims) {
    if (claim.fence === null) waiters.push(waiterView(claim, env))
    else holders.push(holderView(claim, claim.fence, env))
  }
  const kind = line.capacity === EXCLUSIVE ? 'lock' : 'semaphore'
  return { name: line.resource, kind, capacity: line.capacity, holders, waiters }
}

export function holderView(claim: ClaimView, fence: number, env: Env): HolderView {
  return { ...waiterView(claim, env), fence }
}

export function waiterView(claim: ClaimView, env: Env): WaiterView {
  const wallMs = env.wallMs()
  return {
    id: claim.id,
    ...parseInfo(claim),
    permits: claim.permits,
    since: dateAt(wallMs - claim.ageMs),
    expires: dateAt(wallMs + claim.expiresInMs),
  }
}

/** The last moment that a Date can be. A lease may end later. */
const LAST_MS = 8.64e15

export function dateAt(wallMs: number): Date {
  return new Date(Math.min(Math.max(wallMs, -LAST_MS), LAST_MS))
}

/** What other clients wrote may be malformed. */
export function parseInfo(
  claim: Pick<ClaimView, 'id' | 'info'>,
): Pick<WaiterView, 'owner' | 'host' | 'pid' | 'label'> {
  let info: Record<string, unknown> = {}
  try {
    info = Object(JSON.parse(claim.info))
  } catch {
    // Another library's claim, or a damaged one: show only its id.
  }
  const text = (key: string): string | null => (typeof info[key] === 'string' ? info[key] : null)
  const pid = typeof info['pid'] === 'number' ? info['pid'] : 0
  return { owner: text('owner') ?? claim.id, host: text('host') ?? '', pid, label: text('label') }
}
