import type { ClaimReply, Held, Waiting } from '../../contract/store.js'
import type { EtcdClaim } from './claim.js'
import type { EtcdSpace } from './space.js'

/** The reply to a `claim` call that was made at `callAt`, for a claim in line. */
export function claimReply(space: EtcdSpace, claim: EtcdClaim, callAt: number): ClaimReply {
  if (claim.state === 'held') return holdOf('granted', space, claim, callAt)
  claim.expiry.hasWaited = true
  return waitingReply(space, claim, callAt)
}

/** The reply to a beat of a pulse. */
export function beatReply(space: EtcdSpace, claim: EtcdClaim, callAt: number): Held | Waiting {
  if (claim.state !== 'held') return waitingReply(space, claim, callAt)
  return holdOf('held', space, claim, callAt)
}

function holdOf<S extends 'granted' | 'held'>(
  status: S,
  space: EtcdSpace,
  claim: EtcdClaim,
  callAt: number,
): Omit<Held, 'status'> & { readonly status: S } {
  const [fence, leaseMs, isWanted] = [claim.fence, leftMs(space, claim, callAt), claim.takeWanted()]
  return isWanted === undefined ? { status, fence, leaseMs } : { status, fence, leaseMs, isWanted }
}

function waitingReply(space: EtcdSpace, claim: EtcdClaim, callAt: number): Waiting {
  const { rows } = claim.line
  const isNext = claim.row !== null && rows.isNext(claim.row)
  const grantsAbove = Math.max(claim.fence - 1, rows.lastJump)
  const presenceMs = leftMs(space, claim, callAt)
  return { status: 'waiting', presenceMs, isNext, freeInMs: null, grantsAbove }
}

/** A claim ends at its own expiry, or when the servers may end the lease. */
function leftMs(space: EtcdSpace, { expiry }: EtcdClaim, callAt: number): number {
  return Math.min(expiry.at, space.session.lease.validUntil) - callAt
}
