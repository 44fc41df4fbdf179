import type { ClaimReply, Held, Waiting } from '../../contract/store.js'
import type { LineClaim } from './claim.js'
import type { SharedSession } from './session.js'

/** The reply to a `claim` call that was made at `callAt`, for a claim in line. */
export function claimReply(session: SharedSession, claim: LineClaim, callAt: number): ClaimReply {
  if (claim.state === 'held') return { status: 'granted', ...holdOf(session, claim, callAt) }
  claim.expiry.hasWaited = true
  return waitingReply(session, claim, callAt)
}

/** The reply to a beat of a pulse. */
export function beatReply(session: SharedSession, claim: LineClaim, callAt: number): Held | Waiting {
  if (claim.state !== 'held') return waitingReply(session, claim, callAt)
  return { status: 'held', ...holdOf(session, claim, callAt) }
}

function holdOf(session: SharedSession, claim: LineClaim, callAt: number): Omit<Held, 'status'> {
  const [fence, leaseMs, isWanted] = [claim.fence, leftMs(session, claim, callAt), claim.takeWanted()]
  return isWanted === undefined ? { fence, leaseMs } : { fence, leaseMs, isWanted }
}

function waitingReply(session: SharedSession, claim: LineClaim, callAt: number): Waiting {
  const { isNext, grantsAbove } = claim.position
  const presenceMs = leftMs(session, claim, callAt)
  return { status: 'waiting', presenceMs, isNext, freeInMs: null, grantsAbove }
}

/** A claim ends at its own expiry, or when the leader may end the session. */
function leftMs(session: SharedSession, { expiry }: LineClaim, callAt: number): number {
  return Math.min(expiry.at, session.validUntil) - callAt
}
