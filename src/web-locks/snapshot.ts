import { EXCLUSIVE } from '../contract/constants.js'
import type { ClaimView } from '../contract/store.js'
import { clientOf, type Operator } from '../primitives/operator.js'
import { nameOf } from './names.js'
import type { LockInfo, LockManagerSnapshot } from './types.js'

/**
 * All locks of the space: a mutex is an exclusive lock, a reader a shared one. Semaphores are left
 * out.
 */
export async function snapshot(operator: Operator): Promise<LockManagerSnapshot> {
  const held: LockInfo[] = []
  const pending: LockInfo[] = []
  for await (const { resource, capacity, claims } of operator.inspect({ prefix: '' })) {
    if (capacity !== EXCLUSIVE) continue
    for (const claim of claims) (claim.fence === null ? pending : held).push(lockInfo(resource, claim))
  }
  return { held, pending }
}

function lockInfo(resource: string, claim: ClaimView): LockInfo {
  const mode = claim.permits === EXCLUSIVE ? 'exclusive' : 'shared'
  return { name: nameOf(resource), mode, clientId: clientOf(claim.id) }
}
