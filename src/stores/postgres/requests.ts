import { encodeText } from '../../base/text.js'
import type { Beat, ClaimRequest } from '../../contract/store.js'
import { groupByLine } from '../shared/beats.js'
import { toUs } from '../shared/time.js'
import type { Value } from './driver.js'

/** A claim or release, as the SQL type `request` has it. */
export interface PostgresRequest {
  readonly mode: ClaimRequest['mode'] | 'release'
  readonly id: string
  readonly [field: string]: unknown
}

/** `isDeaf`: the client would not hear a push. */
export function claimRequest(request: ClaimRequest, client: string, isDeaf: boolean): PostgresRequest {
  const { mode, permits, capacity, leaseMs, presenceMs, maxHoldMs, floor, block, adopts, maxWaiters } =
    request
  return {
    mode,
    id: encodeText(request.id),
    client,
    permits,
    capacity,
    lease: toUs(leaseMs),
    presence: toUs(presenceMs),
    max_hold: maxHoldMs === null ? null : toUs(maxHoldMs),
    floor,
    block,
    info: encodeText(request.info),
    ...(isDeaf ? { deaf: true } : {}),
    ...(maxWaiters === undefined ? {} : { max_waiters: maxWaiters }),
    ...(adopts ? { old: encodeText(adopts.id), old_fence: adopts.fence } : {}),
  }
}

export function releaseRequest(id: string): PostgresRequest {
  return { mode: 'release', id: encodeText(id) }
}

/** The routine for these requests, with its arguments: only the last two take several. */
export function routineFor(requests: readonly PostgresRequest[]): { routine: string; values: Value[] } {
  const [only] = requests
  const isBounded = requests.some((request) => request['max_waiters'] !== undefined)
  if (only && requests.length === 1) {
    const take = isBounded ? 'take_bounded' : 'take'
    return { routine: only.mode === 'release' ? 'give_back' : take, values: [JSON.stringify(only)] }
  }
  const claims = requests.filter(({ mode }) => mode !== 'release').length
  const routine = isBounded ? 'bounded_calls' : 'calls'
  return { routine, values: [JSON.stringify(requests), String(claims)] }
}

/** The beats as the routine `pulse` takes them. */
export function pulseLines(beats: readonly Beat[], isDeaf: boolean): string {
  const lines = groupByLine(beats).map(({ resource, indexes }) => ({
    resource: encodeText(resource),
    beats: indexes.map((n) => {
      const { id, leaseMs, presenceMs, permits, block, fences } = beats[n] as Beat
      const beat = { n, id: encodeText(id), lease: toUs(leaseMs), presence: toUs(presenceMs), permits, block }
      return { ...beat, first: fences?.first, count: fences?.count, deaf: isDeaf || undefined }
    }),
  }))
  return JSON.stringify(lines)
}
