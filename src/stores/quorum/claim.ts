import type { Env } from '../../base/env.js'
import type { ClaimReply, ClaimRequest, Held, Waiting } from '../../contract/store.js'
import { leaseForMs } from '../../contract/validity.js'
import { Agreement } from './agreement.js'
import { Asking } from './asking.js'
import { ClaimAnswer } from './claim-answer.js'
import type { Contention } from './contention.js'
import type { FenceHints } from './fence-hints.js'
import { COLLECT_MS, Line } from './line.js'
import type { Member } from './member.js'
import type { Members } from './members.js'
import { ClaimTimers } from './timers.js'
import type { Vote } from './vote.js'
import type { Votes } from './votes.js'
import { BUSY, Voting } from './voting.js'

/** Where the push of a grant gets lost, the engine asks after so long whether it has come. */
const ASK_AGAIN_MS = 50
/** The longest pause before a claim that got no majority is made anew. */
const LONGEST_PAUSE_MS = 100

/**
 * - `asking`: sent to all members
 * - `line`: waits in the usher's line
 * - `collecting`: has the usher's grant, and waits for the others
 * - `agreeing`: a majority has granted it, with different fences
 * - `held`: a majority has granted it with one fence
 * - `over`: given back, lost or refused
 */
export type ClaimPhase = 'asking' | 'line' | 'collecting' | 'agreeing' | 'held' | 'over'

export interface QuorumClaimContext {
  readonly env: Env
  readonly members: Members
  readonly hints: FenceHints
  readonly contention: Contention
  /** An id for a claim on a member, which is never used again. */
  newNonce(id: string): string
  /** Gives back what a member may have. Never fails. */
  giveBack(member: Member, resource: string, nonce: string): void
  /** It was refused, or failed: nothing of it is left. */
  onRefused(claim: QuorumClaim): void
  onGranted(claim: QuorumClaim): void
  /** The place or the hold is gone. */
  onLost(claim: QuorumClaim): void
}

/**
 * One claim of the engine, on all members. docs/decisions/0013-quorum.md has the protocol. What
 * happens in a phase is in `Asking`, `Line` and `Agreement`; here are the hold and the endings.
 */
export class QuorumClaim {
  phase: ClaimPhase = 'asking'
  /** The member whose line it stands in. */
  usher: Member | null = null
  /** The fence that a majority has acknowledged: of the hold, and the first behind its block. */
  fence = 0
  endFence = 0
  /** Its permits were reduced since. */
  isShrunk = false
  readonly answer = new ClaimAnswer()
  readonly timers: ClaimTimers
  readonly voting: Voting
  readonly line: Line
  readonly agreement: Agreement
  readonly #asking: Asking
  /** Behind all further fences that members were asked for. */
  #endAsked = 0
  /** Before anything was sent: the lease counts from here. */
  readonly #startedAt: number

  constructor(
    readonly request: ClaimRequest,
    readonly context: QuorumClaimContext,
  ) {
    const { env, members } = context
    this.#startedAt = env.now()
    this.timers = new ClaimTimers(env, members, () => this.decide())
    this.voting = new Voting(this)
    this.#asking = new Asking(this)
    this.line = new Line(this)
    this.agreement = new Agreement(this)
  }

  get resource(): string {
    return this.request.resource
  }

  get votes(): Votes {
    return this.voting.votes
  }

  /** Sends the claim to all members that vote. `adopts`: by member, the claim to adopt there. */
  start(adopts?: ReadonlyMap<Member, { id: string; fence: number }>): void {
    this.usher = this.context.members.usherOf(this.resource)
    this.#asking.start(adopts)
  }

  /** Something is known that was not known before. */
  decide(): void {
    if (this.phase === 'asking') this.#asking.decide()
    else if (this.phase === 'line') this.line.decide()
    else if (this.phase === 'collecting') this.line.decideCollecting()
    else if (this.phase === 'agreeing') this.agreement.decide()
    else if (this.phase === 'held' && !this.votes.canBeMajority('granted')) this.lose()
  }

  /** A member failed: its waiters claim at another one. */
  onFailure(member: Member): void {
    if (this.usher === member && (this.phase === 'line' || this.phase === 'collecting')) this.abandon()
  }

  /** A majority has the fence that was to be agreed on. */
  hold(): void {
    // The first grants may have lapsed while the last one was waited for.
    if (this.votes.coveredUntil <= this.context.env.now()) return this.abandon()
    this.timers.end()
    this.phase = 'held'
    this.answer.tellDecided()
    this.fence = this.agreement.target
    this.endFence = this.fence + this.request.block
    if (this.answer.isGiven) return this.context.onGranted(this)
    const { fence, leaseMs: coveredMs, isWanted } = this.heldReply(this.#startedAt)
    // The members were asked later, but no lease is longer than what was asked for.
    const leaseMs = Math.min(coveredMs, this.request.leaseMs)
    const granted = { status: 'granted', fence, leaseMs } as const
    this.answer.give(isWanted === undefined ? granted : { ...granted, isWanted })
  }

  /**
   * The first of further fences to ask for, behind all that a member may have given to this claim.
   * Nothing is asked for twice: a member's answer does not say how many it has reserved.
   */
  nextFences(count: number, least = 0): number {
    const first = Math.max(least, this.endFence, this.votes.highestFence + 1, this.#endAsked)
    this.#endAsked = first + count
    return first
  }

  /** Whether members without the claim may be asked for it: it is as it was granted. */
  get canJoin(): boolean {
    const { mode, maxHoldMs } = this.request
    return this.phase === 'held' && !this.isShrunk && mode !== 'adopt' && maxHoldMs === null
  }

  /** Whether it is about to be decided what becomes of it. */
  get isUndecided(): boolean {
    return this.phase === 'asking' || this.phase === 'collecting' || this.phase === 'agreeing'
  }

  heldReply(sentAt: number): Held {
    const { votes, fence } = this
    const leaseMs = Math.max(0, leaseForMs(votes.coveredUntil - sentAt))
    const held = { status: 'held', fence, leaseMs } as const
    const isWanted = this.context.members.tellWanted || votes.isWanted ? votes.isWanted : undefined
    return isWanted === undefined ? held : { ...held, isWanted }
  }

  /** The present state, for a claim that is sent again. */
  reply(): ClaimReply {
    if (this.phase !== 'held') return this.waitingReply()
    const { fence, leaseMs } = this.heldReply(this.context.env.now())
    return { status: 'granted', fence, leaseMs }
  }

  waitingReply(): Waiting {
    const vote = this.usher ? this.votes.of(this.usher) : null
    const { place } = vote ?? {}
    const isInLine = vote?.state === 'waiting' || vote?.state === 'granted'
    const isCollecting = this.phase === 'collecting' || this.phase === 'agreeing'
    const leftMs = isInLine ? Math.min(vote.until, this.line.placeUntil) - this.context.env.now() : 0
    return {
      status: 'waiting',
      presenceMs: Math.max(0, leftMs),
      isNext: isCollecting || (place?.isNext ?? true),
      freeInMs: isCollecting ? ASK_AGAIN_MS : (place?.freeInMs ?? null),
      grantsAbove: place?.grantsAbove ?? 0,
      ...(place?.ahead === undefined ? {} : { ahead: place.ahead }),
    }
  }

  /** Ends it. Gives what the members may still have of it. */
  end(): Vote[] {
    if (this.phase === 'over') return []
    this.phase = 'over'
    this.answer.tellDecided()
    this.timers.end()
    // Nobody waits for the answer any more, unless one follows at once.
    if (!this.answer.isGiven) queueMicrotask(() => this.answer.give(BUSY))
    return this.votes.owed
  }

  #giveBackAll(): void {
    for (const vote of this.end()) this.voting.giveBack(vote)
  }

  /** It could not be asked for. */
  fail(error: unknown): void {
    this.#giveBackAll()
    this.context.onRefused(this)
    this.answer.fail(error)
  }

  refuse(reply: ClaimReply): void {
    this.#giveBackAll()
    this.context.onRefused(this)
    this.answer.give(reply)
  }

  /**
   * The majority, or the place in line, is gone. What other members have is given back a little
   * later: another client may be about to adopt it there.
   */
  lose(): void {
    const owed = this.end()
    const giveBack = (): void => {
      for (const vote of owed) this.voting.giveBack(vote)
    }
    if (owed.length > 0) this.context.env.timer(COLLECT_MS, giveBack, { keepAlive: false })
    this.context.onLost(this)
  }

  /**
   * No majority: everything is given back, and the engine claims anew after a random pause. A try
   * that nobody has refused was too slow; that says nothing of other holders.
   */
  abandon(): void {
    const { env, members } = this.context
    if (this.request.mode === 'try')
      return this.votes.count('busy') > 0 ? this.refuse(BUSY) : this.fail(members.unavailable())
    this.#giveBackAll()
    this.answer.give(this.waitingReply())
    const pauseMs = LONGEST_PAUSE_MS * env.random()
    env.timer(pauseMs, () => this.context.onLost(this), { keepAlive: true })
  }
}
