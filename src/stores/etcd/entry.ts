import type { ClaimReply, Refused } from '../../contract/store.js'
import type { EtcdClaim } from './claim.js'
import { askAgain } from './failures.js'
import { claimReply } from './replies.js'
import type { EtcdSpace } from './space.js'
import { adopt, steal, tryJoin } from './takeover.js'

/** Puts claims into their lines, each in the way of its mode. */
export class EtcdEntry {
  readonly #space: EtcdSpace

  constructor(space: EtcdSpace) {
    this.#space = space
  }

  /**
   * The reply to a `claim` call that was made at `callAt`, for a new claim or one that is in line.
   */
  async reply(claim: EtcdClaim, callAt: number): Promise<ClaimReply> {
    const turn = claim.calls.enter()
    if (turn) await turn
    try {
      if (claim.isUncertain) await claim.recover()
      if (claim.state === 'new') {
        const refusal = await this.#enter(claim)
        if (refusal) return this.#refuse(claim, refusal)
        claim.isFresh = true
      }
      // Only where there is something to wait for: each await costs, and this is in every lock.
      const reached = this.#reached(claim)
      if (reached) await reached
      const mismatch = this.#mismatch(claim)
      if (mismatch) return this.#refuse(claim, mismatch)
      const gettingFence = this.#grant(claim)
      if (gettingFence) await gettingFence
      const refusal = this.#stay(claim)
      if (refusal) return this.#refuse(claim, refusal)
      if (claim.state !== 'gone') return claimReply(this.#space, claim, callAt)
    } finally {
      claim.calls.leave()
    }
    throw askAgain(`The lease ended before '${claim.request.resource}' was granted`)
  }

  /** Resolves to the refusal; null: the claim is in line. */
  #enter(claim: EtcdClaim): Promise<Omit<Refused, 'status'> | null> {
    const { mode, adopts } = claim.request
    const { line } = claim
    if (mode === 'queue') return line.joins.join(claim)
    if (mode === 'try') return line.entries.run(() => tryJoin(this.#space, claim))
    if (adopts) return line.entries.run(() => adopt(this.#space, claim, adopts))
    return line.entries.run(() => steal(this.#space, claim))
  }

  /** Resolves when the line is known as it was when the claim came; null: it is. */
  #reached({ state, row, line }: EtcdClaim): Promise<void> | null {
    return state === 'waiting' && row ? line.reached(row.createRevision) : null
  }

  #mismatch(claim: EtcdClaim): Omit<Refused, 'status'> | null {
    const { line, request, state, row } = claim
    if (state !== 'waiting' || !row) return null
    if (!claim.isAccepted && !line.rows.agrees(request))
      return { reason: 'capacity', capacity: line.rows.capacity ?? request.capacity }
    claim.isAccepted = true
    return null
  }

  /** Grants the claim if it is its turn. Resolves when it has its fence; null: nothing is to do. */
  #grant(claim: EtcdClaim): Promise<void> | null {
    const { line, state, row } = claim
    if (state !== 'waiting' || !row || !line.rows.isHeld(row)) return null
    if (claim.isOvertaken) return claim.takeLaterFence()
    claim.onFirst()
    return null
  }

  /** The refusal; null: the claim holds, or waits. */
  #stay(claim: EtcdClaim): Omit<Refused, 'status'> | null {
    const { line, request } = claim
    if (claim.state !== 'waiting') return null
    if (request.mode === 'try') return { reason: 'busy' }
    if (isTooMany(claim)) return { reason: 'full' }
    line.watch()
    return null
  }

  async #refuse(claim: EtcdClaim, why: Omit<Refused, 'status'>): Promise<ClaimReply> {
    await claim.leave()
    return { status: 'refused', ...why }
  }
}

/**
 * Whether too many wait ahead of a claim that has just joined. Each claim sees those ahead of it,
 * so of many that join at once only as many stay as may.
 */
function isTooMany({ row, line, request, expiry }: EtcdClaim): boolean {
  const { maxWaiters } = request
  return maxWaiters !== undefined && row !== null && !expiry.hasWaited && line.rows.ahead(row) >= maxWaiters
}
