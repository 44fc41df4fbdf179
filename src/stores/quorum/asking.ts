import { HoldfastError } from '../../base/errors.js'
import type { QuorumClaim } from './claim.js'
import type { Member } from './member.js'
import type { VoteState } from './vote.js'
import { BUSY, type Question } from './voting.js'

/**
 * How often a try that has the usher asks the others again, after pauses that grow: they may have
 * granted another try, which gives it back.
 */
const MOST_TRIES = 10
const TRY_PAUSE_MS = 3

const ANSWERED = ['granted', 'busy', 'waiting', 'gone'] as const

/** The first phase of a claim: all members are asked, or only the usher. */
export class Asking {
  readonly #claim: QuorumClaim
  #tries = 1
  /** The other members are asked when the usher has granted it. */
  #isUsherOnly = false

  constructor(claim: QuorumClaim) {
    this.#claim = claim
  }

  /** `adopts`: by member, the claim to adopt there. */
  start(adopts?: ReadonlyMap<Member, { id: string; fence: number }>): void {
    const { context, voting, usher, resource, request } = this.#claim
    const { mode } = request
    this.#claim.timers.asked()
    if (adopts) return this.#adopt(adopts)
    this.#isUsherOnly = mode === 'queue' && context.contention.has(resource)
    const questions: Question[] = []
    // The usher first: its answer is waited for.
    if (usher) questions.push({ vote: voting.votes.of(usher), mode })
    const others = this.#isUsherOnly ? [] : context.members.up
    for (const member of others)
      if (member !== usher)
        questions.push({ vote: voting.votes.of(member), mode: mode === 'queue' ? 'try' : mode })
    voting.ask(questions)
  }

  #adopt(adopts: ReadonlyMap<Member, { id: string; fence: number }>): void {
    const { context, voting } = this.#claim
    const found: Question[] = []
    for (const member of context.members.up) {
      const vote = voting.votes.of(member)
      const adopted = adopts.get(member)
      if (adopted) found.push({ vote, mode: 'adopt', adopts: adopted })
      else vote.state = 'gone'
    }
    voting.ask(found)
  }

  decide(): void {
    const { voting, timers, request } = this.#claim
    const { votes } = voting
    const usher = this.#usherVote
    if (usher === 'waiting' && request.mode === 'queue') return this.#claim.line.enter()
    // Also if a majority has granted it: those that wait there come first.
    if (voting.isFull) return this.#refuseFull()
    if (this.#isUsherOnly) return this.#decideByUsher(usher)
    // Others wait there, also where the other members have room for one more reader.
    if (usher === 'busy' && request.mode === 'try') return this.#claim.refuse(voting.refusal ?? BUSY)
    if (votes.canBeMajority('granted')) {
      // The usher may have promoted another claim: that one must not be overtaken. Of a reader, the
      // other members cannot know whether a writer waits.
      const isShared = request.permits < request.capacity
      const isWaitedFor = usher === 'asked' && (isShared || !timers.isGraceOver)
      if (!isWaitedFor) this.#claim.agreement.begin()
      else if (!isShared) timers.startGrace()
    } else if (!votes.canBeMajority('granted', 'asked')) this.#noMajority()
  }

  #refuseFull(): void {
    const { context, resource } = this.#claim
    context.contention.note(resource)
    this.#claim.refuse({ status: 'refused', reason: 'full' })
  }

  get #usherVote(): VoteState | null {
    const { usher, votes } = this.#claim
    return usher && votes.of(usher).state
  }

  #decideByUsher(usher: VoteState | null): void {
    const { voting, context, resource, line } = this.#claim
    if (usher === 'asked') return
    if (usher === 'granted') {
      context.contention.forget(resource)
      line.collect()
    } else if (voting.refusal) this.#claim.refuse(voting.refusal)
    else this.#claim.abandon()
  }

  #noMajority(): void {
    const { votes, voting, request, line } = this.#claim
    const usher = this.#usherVote
    // The usher has not said yet whether it is worth waiting.
    if (usher === 'asked' && request.mode === 'queue') return
    if (!votes.canBeMajority(...ANSWERED, 'asked')) return this.#claim.fail(this.#unavailable())
    if (!votes.canBeMajority(...ANSWERED)) return
    if (voting.refusal) return this.#claim.refuse(voting.refusal)
    if (request.mode === 'adopt') return this.#claim.refuse({ status: 'refused', reason: 'gone' })
    if (request.mode === 'try') return this.#tryAgain(usher === 'granted')
    if (request.mode === 'queue' && usher === 'granted') return line.collect()
    this.#claim.abandon()
  }

  /** The error of a member that refuses the call as such, or the failure of all. */
  #unavailable(): unknown {
    const { failure } = this.#claim.voting
    const isRefusal = failure instanceof HoldfastError && failure.code !== 'STORE_UNAVAILABLE'
    return isRefusal ? failure : this.#claim.context.members.unavailable()
  }

  /** Two tries may have met, and split the votes: the one that has the usher goes on. */
  #tryAgain(hasUsher: boolean): void {
    const { context, timers, voting } = this.#claim
    if (!hasUsher || this.#tries >= MOST_TRIES) return this.#claim.refuse(BUSY)
    this.#tries++
    // The others give their votes back when the slowest member has refused them.
    const pauseMs = Math.max(TRY_PAUSE_MS * this.#tries, context.members.roundTripsMs(0))
    timers.limit(pauseMs * context.env.random(), () => {
      const busy = [...voting.votes].filter(({ state }) => state === 'busy')
      voting.ask(busy.map((vote) => ({ vote, mode: 'try' })))
    })
  }
}
