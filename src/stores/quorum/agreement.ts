import type { Beat } from '../../contract/store.js'
import type { QuorumClaim } from './claim.js'
import { COLLECT_MS } from './line.js'
import type { Vote } from './vote.js'

/** How often members are asked for one fence before the claim gives up. */
const MOST_RAISES = 6
/** How far above a newer fence the next attempt is: others may be on their way. */
export const FENCE_STEP = 1000

/** A majority has granted the claim: now it has to acknowledge one fence. */
export class Agreement {
  /** The fence that a majority has to acknowledge. */
  target = 0
  readonly #claim: QuorumClaim
  #raises = 0
  #raisesUnderWay = 0

  constructor(claim: QuorumClaim) {
    this.#claim = claim
  }

  begin(): void {
    const { context, votes, timers } = this.#claim
    const { hints, members } = context
    this.#claim.phase = 'agreeing'
    this.target = votes.highestFence
    if (this.#isReached) {
      hints.agreed()
      return this.#claim.hold()
    }
    hints.differed(this.target)
    timers.limit(members.roundTripsMs(COLLECT_MS), () => this.#claim.abandon())
    this.#claim.decide()
  }

  get #isReached(): boolean {
    return this.#claim.votes.agreeOn(this.target, this.#claim.context.env.now())
  }

  decide(): void {
    if (this.#isReached) return this.#claim.hold()
    const { context, votes, timers } = this.#claim
    // An answer that is under way may have the fence as well, and spare the second round.
    const isExpected = this.#raises === 0 && votes.count('asked') > 0 && !timers.isGraceOver
    if (isExpected || this.#raisesUnderWay > 0) {
      if (isExpected) timers.startGrace()
      return
    }
    const granted = votes.granted.filter(({ member }) => member.isUp)
    const { majority } = context.members
    const isPossible = granted.length + votes.count('asked', 'waiting') >= majority
    if (!isPossible || this.#raises >= MOST_RAISES) return this.#claim.abandon()
    if (granted.length < majority) return
    // A newer fence was given out somewhere: only one above it can be agreed on.
    const newest = granted.reduce((most, vote) => Math.max(most, vote.fence, vote.newest), 0)
    if (newest > this.target || granted.some((vote) => vote.newest >= this.target))
      this.target = newest + FENCE_STEP
    this.#raise()
  }

  /** Asks the members with another fence for the target. */
  #raise(): void {
    this.#raises++
    const { target } = this
    const now = this.#claim.context.env.now()
    // Also those that may have lapsed: their answers tell.
    for (const vote of this.#claim.votes.granted)
      if ((vote.fence !== target || vote.until <= now) && vote.member.isUp) void this.#raiseOn(vote, target)
    if (this.#raisesUnderWay === 0) this.#claim.abandon()
  }

  async #raiseOn(vote: Vote, first: number): Promise<void> {
    const { request, context, voting } = this.#claim
    const { resource, presenceMs, block } = request
    const { leaseMs } = voting
    const { nonce, member } = vote
    const sentAt = context.env.now()
    const beat: Beat = { resource, id: nonce, leaseMs, presenceMs, fences: { first, count: block } }
    vote.raising(first)
    this.#raisesUnderWay++
    try {
      const [reply] = await member.call((connection) => connection.pulse([beat]))
      if (reply && vote.nonce === nonce) voting.onBeat(vote, reply, sentAt)
    } catch {
      // The member rests from now on; the others may be enough.
    }
    this.#raisesUnderWay--
    this.#claim.decide()
  }
}
