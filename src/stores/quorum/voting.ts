import type { BeatReply, ClaimMode, ClaimReply, ClaimRequest } from '../../contract/store.js'
import type { QuorumClaim } from './claim.js'
import type { Member } from './member.js'
import type { Vote } from './vote.js'
import { Votes } from './votes.js'

/** What a member is asked for. */
export interface Question {
  readonly vote: Vote
  readonly mode: ClaimMode
  /** The claim on that member in whose place ours enters. */
  readonly adopts?: { readonly id: string; readonly fence: number }
}

export const BUSY: ClaimReply = { status: 'refused', reason: 'busy' }

/** Asks members for a claim, and counts what they answer and tell. */
export class Voting {
  readonly votes: Votes
  /** What the next members are asked for. */
  leaseMs: number
  presenceMs: number
  /** Why a member could not be asked. */
  failure: unknown = null
  /** The answer of a member that refuses the claim for another reason than a holder. */
  refusal: ClaimReply | null = null
  /** As many wait in the usher's line as the claim allows. */
  isFull = false
  readonly #claim: QuorumClaim

  constructor(claim: QuorumClaim) {
    const { all, majority } = claim.context.members
    this.#claim = claim
    this.votes = new Votes(all, majority)
    this.leaseMs = claim.request.leaseMs
    this.presenceMs = claim.request.presenceMs
  }

  /** Asks members for the claim, all with one floor. */
  ask(questions: readonly Question[]): void {
    const { context, request, endFence } = this.#claim
    const seen = Math.max(request.floor, endFence)
    const floor = context.hints.floor(seen, context.members.slowestMs)
    const sentAt = context.env.now()
    for (const { vote } of questions) {
      // An earlier call may have arrived although its answer did not.
      if (vote.state === 'failed') this.giveBack(vote)
      vote.asked(context.newNonce(request.id), this.presenceMs, sentAt)
    }
    // A member may answer within the call, and its answer may end the claim.
    for (const question of questions) if (question.vote.state === 'asked') this.#send(question, floor, sentAt)
    this.#claim.decide()
  }

  /** Asks a member that does not have the claim, while the others hold it. */
  join(vote: Vote): void {
    this.leaseMs = this.#claim.request.leaseMs
    this.presenceMs = this.#claim.request.presenceMs
    this.ask([{ vote, mode: 'try' }])
  }

  #send(question: Question, floor: number, sentAt: number): void {
    const { vote } = question
    const { member, nonce } = vote
    const request = this.#requestOf(question, floor)
    const isCurrent = (): boolean =>
      !this.#isOver && vote.nonce === nonce && (vote.state === 'asked' || vote.state === 'failed')
    const onLate = (reply: ClaimReply): void => {
      const isWanted = !this.#isOver && vote.nonce === nonce && vote.isOwed
      if (reply.status === 'refused' || isWanted) return
      this.#claim.context.giveBack(member, request.resource, nonce)
    }
    member.start((connection) => connection.claim(request), {
      onLate,
      onAnswer: (reply) => {
        if (isCurrent()) this.#answered(vote, reply, sentAt)
        else onLate(reply)
      },
      onFailure: (error) => {
        if (!isCurrent()) return
        vote.state = 'failed'
        this.failure ??= error
        this.#claim.decide()
      },
    })
  }

  #requestOf({ vote, mode, adopts }: Question, floor: number): ClaimRequest {
    const { resource, permits, capacity, maxHoldMs, block, info } = this.#claim.request
    const { leaseMs, presenceMs } = this
    const id = vote.nonce
    const request = {
      resource,
      id,
      permits,
      capacity,
      leaseMs,
      presenceMs,
      maxHoldMs,
      mode,
      floor,
      block,
      info,
    }
    if (adopts) return { ...request, adopts }
    const { maxWaiters } = this.#claim.request
    // Only the usher's line has an end: at the others it claims what is its turn.
    const isBounded = maxWaiters !== undefined && mode === 'queue' && this.#claim.phase === 'asking'
    return isBounded ? { ...request, maxWaiters } : request
  }

  #answered(vote: Vote, reply: ClaimReply, sentAt: number): void {
    if (reply.status === 'granted') {
      if (this.#mayCount(vote)) vote.granted(reply, sentAt)
    } else if (reply.status === 'waiting') vote.waiting(reply, sentAt)
    else {
      vote.state = reply.reason === 'gone' ? 'gone' : 'busy'
      if (reply.reason === 'capacity') this.refusal = reply
      if (reply.reason === 'full') this.isFull = true
    }
    this.#claim.decide()
  }

  /** A member told that it has promoted the claim. false: it has no such claim. */
  onGranted(member: Member, nonce: string, fence: number): boolean {
    const vote = this.votes.of(member)
    if (vote.nonce !== nonce || this.#isOver) return false
    // A late one belongs to an earlier stay in line.
    if (vote.canBeGranted(fence) && this.#mayCount(vote)) {
      vote.promoted(fence, this.#claim.request.maxHoldMs)
      this.#claim.decide()
    }
    return true
  }

  /** A member has revoked the claim. */
  onRevoked(member: Member, nonce: string): void {
    const vote = this.votes.of(member)
    if (vote.nonce !== nonce || this.#isOver) return
    // Also where the answer that grants it is still under way: that is given back.
    vote.state = 'gone'
    this.#claim.decide()
  }

  /** What a member has answered to a beat. */
  onBeat(vote: Vote, reply: BeatReply, sentAt: number): void {
    if (!vote.isOwed || this.#isOver) return
    const before = vote.state
    const isNew = reply.status === 'held' && before !== 'granted'
    if (isNew && !this.#mayCount(vote)) return
    if (!vote.beaten(reply, sentAt)) {
      // Held under another fence: a claim that was long under way has made it anew.
      if (reply.status !== 'gone') this.#claim.context.giveBack(vote.member, this.#claim.resource, vote.nonce)
      vote.state = 'gone'
    }
    if (vote.state !== before) this.#claim.decide()
  }

  giveBack(vote: Vote): void {
    if (vote.isOwed) this.#claim.context.giveBack(vote.member, this.#claim.resource, vote.nonce)
    vote.state = 'none'
  }

  /**
   * Whether a grant that comes now may count. One that comes to a hold later must find a majority
   * without it: otherwise another client may have held the lock in between.
   */
  #mayCount(vote: Vote): boolean {
    const { phase, context } = this.#claim
    const mayCount = phase !== 'held' || this.votes.coveredUntil > context.env.now()
    if (!mayCount) this.giveBack(vote)
    return mayCount
  }

  get #isOver(): boolean {
    return this.#claim.phase === 'over'
  }
}
