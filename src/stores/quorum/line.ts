import { leaseForMs, trustedUntil } from '../../contract/validity.js'
import type { QuorumClaim } from './claim.js'
import type { Member } from './member.js'
import type { Vote } from './vote.js'

/** A claim that gets no majority within this time, or a few round trips, gives up. */
export const COLLECT_MS = 250

/** The way of a claim through the usher's line, and from its promotion there to a majority. */
export class Line {
  /** Once it has the usher's grant: the engine is promised the place for no longer than this. */
  placeUntil = Infinity
  readonly #claim: QuorumClaim

  constructor(claim: QuorumClaim) {
    this.#claim = claim
  }

  /** The vote of the member whose line it stands in. */
  get #place(): Vote {
    return this.#claim.votes.of(this.#claim.usher as Member)
  }

  enter(): void {
    const { context, timers, voting, usher } = this.#claim
    this.#claim.phase = 'line'
    context.contention.note(this.#claim.resource)
    timers.end()
    for (const vote of voting.votes) if (vote.member !== usher) voting.giveBack(vote)
    this.#claim.answer.give(this.#claim.waitingReply())
    context.members.watch()
  }

  decide(): void {
    const { state } = this.#place
    if (state === 'granted') this.collect()
    else if (state !== 'waiting') this.#claim.lose()
  }

  /** It is its turn in the usher's line: now the others, behind the release of the last holder. */
  collect(): void {
    const { context, timers, voting, request } = this.#claim
    const { env, members } = context
    this.#claim.phase = 'collecting'
    timers.endGrace()
    timers.asked()
    const { until } = this.#place
    this.placeUntil = Math.min(until, trustedUntil(env.now(), request.presenceMs))
    // A promotion refreshes nothing: the next pulse starts the lease.
    // With `maxHold`, only an answer of the usher tells how long its grant lasts.
    const isKnown = request.maxHoldMs === null
    const restMs = isKnown ? Math.max(1, leaseForMs(until - env.now())) : Infinity
    voting.leaseMs = Math.min(request.leaseMs, restMs)
    voting.presenceMs = Math.min(request.presenceMs, restMs)
    this.#claim.answer.give(this.#claim.waitingReply())
    members.watch()
    // Another claim, which has another usher, may wait for this one on the other members.
    timers.limit(members.roundTripsMs(COLLECT_MS) * (1 + env.random()), () => this.#claim.abandon())
    const others = members.up.map((member) => voting.votes.of(member))
    const missing = others.filter(({ state }) => state !== 'granted' && state !== 'asked')
    voting.ask(missing.map((vote) => ({ vote, mode: 'queue' })))
  }

  decideCollecting(): void {
    const { votes, agreement } = this.#claim
    if (this.#place.state === 'gone') return this.#claim.abandon()
    if (votes.canBeMajority('granted')) return agreement.begin()
    const usher = this.#earlierUsher()
    if (usher) return this.#moveTo(usher)
    if (!votes.canBeMajority('granted', 'asked', 'waiting')) this.#claim.abandon()
  }

  /** A member that ranks before the usher, and in whose line it stands as well. */
  #earlierUsher(): Member | null {
    const { resource, votes } = this.#claim
    const rank = this.#place.member.rankOf(resource)
    for (const { state, member } of votes)
      if (state === 'waiting' && member.isUp && member.rankOf(resource) < rank) return member
    return null
  }

  /**
   * That member was down when this claim chose its usher. The claim that it has promoted may wait
   * for this one at the others: one of the two has to give way.
   */
  #moveTo(usher: Member): void {
    this.#claim.usher = usher
    this.placeUntil = Infinity
    this.#claim.answer.tellDecided()
    this.enter()
  }
}
