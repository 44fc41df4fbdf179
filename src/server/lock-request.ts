import { toMs } from '../base/duration.js'
import { invalid } from '../base/errors.js'
import type { Limits } from '../calls/limits.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type { RequestSpec } from '../engine/spec.js'
import { type LockKind, requestSpec } from '../primitives/options.js'
import { checkFields } from './call.js'

/** The longest time that one request may wait: proxies cut longer ones. */
export const LONGEST_WAIT_MS = 60_000
const DEFAULT_WAIT_MS = 10_000
/** A client must have the time to renew over a network. */
const SHORTEST_LEASE_MS = 1000
/** So that the end of a lease is a date that every language can read. */
const LONGEST_LEASE_DAYS = 36_500
const DAY_MS = 86_400_000
const DEFAULT_LEASE = '30s'

type Body = Readonly<Record<string, unknown>>

const FIELDS = ['lease', 'label', 'owner', 'mode', 'permits', 'capacity']

/** What a client of the lock API asks for. `newId` makes the ids of its claims. */
export function readLockRequest(name: string, body: Body, newId: () => string): RequestSpec {
  checkFields(body, [...FIELDS, 'wait', 'maxWaiters'])
  const { label, owner } = body
  const options = {
    lease: readLeaseMs(body),
    label: textOrNothing('label', label),
    owner: textOrNothing('owner', owner),
  }
  return { ...requestSpec(kindOf(name, body), options, null), newId }
}

function readWaitMs({ wait }: Body): number {
  const waitMs = wait === undefined ? DEFAULT_WAIT_MS : toMs(wait as string | number, { name: 'wait' })
  if (waitMs <= LONGEST_WAIT_MS) return waitMs
  throw invalid(`wait must be at most ${LONGEST_WAIT_MS / 1000} s; to wait longer, ask again`)
}

/** How long the client waits, and behind how many. */
export function readLimits(body: Body, signal: AbortSignal): Limits {
  const { maxWaiters } = body
  const waitMs = readWaitMs(body)
  if (maxWaiters === undefined) return { waitMs, signal }
  return { waitMs, signal, maxWaiters: wholeNumber('maxWaiters', maxWaiters, Number.MAX_SAFE_INTEGER) }
}

export function readLeaseMs({ lease = DEFAULT_LEASE }: Body): number {
  const leaseMs = toMs(lease as string | number, { name: 'lease', minMs: SHORTEST_LEASE_MS })
  if (leaseMs <= LONGEST_LEASE_DAYS * DAY_MS) return leaseMs
  throw invalid(`lease must be at most ${LONGEST_LEASE_DAYS}d`)
}

function kindOf(resource: string, { mode, permits, capacity }: Body): LockKind {
  if (capacity === undefined) {
    if (permits !== undefined)
      throw invalid('permits need a capacity: only semaphores have permits', resource)
    if (mode !== undefined && mode !== 'read' && mode !== 'write')
      throw invalid("mode must be 'read' or 'write'", resource)
    return { resource, permits: mode === 'read' ? 1 : EXCLUSIVE, capacity: EXCLUSIVE, isReentrant: false }
  }
  if (mode !== undefined) throw invalid('mode is for locks, capacity for semaphores', resource)
  const most = wholeNumber('capacity', capacity, EXCLUSIVE - 1)
  return { resource, permits: wholeNumber('permits', permits ?? 1, most), capacity: most, isReentrant: false }
}

function wholeNumber(name: string, value: unknown, most: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= most)
    return value as number
  throw invalid(`${name} must be a whole number from 1 to ${most}`)
}

function textOrNothing(name: string, value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value
  throw invalid(`${name} must be text`)
}
