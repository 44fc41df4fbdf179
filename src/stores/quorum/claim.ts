import type { Cancel, Env } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'
import { nothing } from '../../base/nothing.js'
import type {
  Beat,
  BeatReply,
  ClaimMode,
  ClaimReply,
  ClaimRequest,
  Held,
  Waiting,
} from '../../contract/store.js'
import { leaseForMs, trustedUntil } from '../../contract/validity.js'
import type { Contention } from './contention.js'
import type { FenceHints } from './fence-hints.js'
import type { Member } from './member.js'
import type { Members } from './members.js'
import type { Vote, VoteState } from './vote.js'
import { Votes } from './votes.js'

/** A claim that gets no majority within this time, or a few round trips, gives up. */
const COLLECT_MS = 250
/** Where the push of a grant gets lost, the engine asks after so long whether it has come. */
const ASK_AGAIN_MS = 50
/** The longest pause before a claim that got no majority is made anew. */
const LONGEST_PAUSE_MS = 100
/**
 * How often a try that has the usher asks the others again, after pauses that grow: they may have
 * granted another try, which gives it back.
 */
const MOST_TRIES = 10
const TRY_PAUSE_MS = 3
/** How often members are asked for one fence before the claim gives up. */
const MOST_RAISES = 6
/** How far above a newer fence the next attempt is: others may be on their way. */
export const FENCE_STEP = 1000

const ANSWERED = ['granted', 'busy', 'waiting', 'gone'] as const
const BUSY: ClaimReply = { status: 'refused', reason: 'busy' }

/**
 * - `asking`: sent to all members
 * - `line`: waits in the usher's line
 * - `collecting`: has the usher's grant, and waits for the others
 * - `agreeing`: a majority has granted it, with different fences
 * - `held`: a majority has granted it with one fence
 * - `over`: given back, lost or refused
 */
export type ClaimPhase = 'asking' | 'line' | 'collecting' | 'agreeing' | 'held' | 'over'

/** What a member is asked for. */
interface Question {
  readonly vote: Vote
  readonly mode: ClaimMode
  /** The claim on that member in whose place ours enters. */
  readonly adopts?: { readonly id: string; readonly fence: number }
}

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

/** One claim of the engine, on all members. docs/decisions/0013-quorum.md has the protocol. */
export class QuorumClaim {
  phase: ClaimPhase = 'asking'
  /** The member whose line it stands in. */
  usher: Member | null = null
  /** The fence that a majority has acknowledged: of the hold, and the first behind its block. */
  fence = 0
  endFence = 0
  readonly votes: Votes
  /** The answer to the engine's call. */
  readonly answer: Promise<ClaimReply>
  /** Its permits were reduced since. */
  isShrunk = false
  readonly #context: QuorumClaimContext
  /** Before anything was sent: the lease counts from here. */
  readonly #startedAt: number
  #askedAt = 0
  /** What to ask for. */
  #leaseMs: number
  #presenceMs: number
  #tries = 1
  /** The other members are asked when the usher has granted it. */
  #isUsherOnly = false
  /** The fence that a majority has to acknowledge, while it agrees. */
  #target = 0
  #raises = 0
  #raisesUnderWay = 0
  /** Once it has the usher's grant: the engine is promised the place for no longer than this. */
  #placeUntil = Infinity
  #isGraceOver = false
  #cancelGrace: Cancel | null = null
  #failure: unknown = null
  #refusal: ClaimReply | null = null
  #cancelTimer: Cancel = nothing
  readonly #onDecided: (() => void)[] = []
  #resolve: (reply: ClaimReply) => void = nothing
  #reject: (error: unknown) => void = nothing
  #isAnswered = false

  constructor(
    readonly request: ClaimRequest,
    context: QuorumClaimContext,
  ) {
    this.#context = context
    this.#startedAt = context.env.now()
    this.#leaseMs = request.leaseMs
    this.#presenceMs = request.presenceMs
    const { all, majority } = context.members
    this.votes = new Votes(all, majority)
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  #reply(reply: ClaimReply): void {
    this.#isAnswered = true
    this.#resolve(reply)
  }

  get resource(): string {
    return this.request.resource
  }

  /** Sends the claim to all members that vote. `adopts`: by member, the claim to adopt there. */
  start(adopts?: ReadonlyMap<Member, { id: string; fence: number }>): void {
    const { env, members, contention } = this.#context
    this.usher = members.usherOf(this.resource)
    this.#askedAt = env.now()
    const { mode } = this.request
    if (adopts) return this.#adopt(adopts)
    this.#isUsherOnly = mode === 'queue' && contention.has(this.resource)
    const others = this.#isUsherOnly ? [] : members.up.filter((member) => member !== this.usher)
    // The usher first: its answer is waited for.
    this.#askAll([
      ...(this.usher ? [{ vote: this.votes.of(this.usher), mode }] : []),
      ...others.map(
        (member) => ({ vote: this.votes.of(member), mode: mode === 'queue' ? 'try' : mode }) as const,
      ),
    ])
  }

  #adopt(adopts: ReadonlyMap<Member, { id: string; fence: number }>): void {
    const found: Question[] = []
    for (const member of this.#context.members.up) {
      const vote = this.votes.of(member)
      const adopted = adopts.get(member)
      if (adopted) found.push({ vote, mode: 'adopt', adopts: adopted })
      else vote.state = 'gone'
    }
    this.#askAll(found)
  }

  /** Asks members for the claim, all with one floor. */
  #askAll(questions: readonly Question[]): void {
    const floor = this.#context.hints.floor(Math.max(this.request.floor, this.endFence))
    const sentAt = this.#context.env.now()
    for (const { vote } of questions) {
      // An earlier call may have arrived although its answer did not.
      if (vote.state === 'failed') this.#giveBack(vote)
      vote.asked(this.#context.newNonce(this.request.id), sentAt)
    }
    // A member may answer within the call, and its answer may end the claim.
    for (const question of questions) if (question.vote.state === 'asked') this.#ask(question, floor, sentAt)
    this.#decide()
  }

  #ask(question: Question, floor: number, sentAt: number): void {
    const { vote } = question
    const { member, nonce } = vote
    const claim = this.#claimOf(question, floor)
    const isCurrent = (): boolean =>
      this.phase !== 'over' && vote.nonce === nonce && (vote.state === 'asked' || vote.state === 'failed')
    const onLate = (reply: ClaimReply): void => {
      const isWanted = this.phase !== 'over' && vote.nonce === nonce && vote.isOwed
      if (reply.status !== 'refused' && !isWanted) this.#context.giveBack(member, this.resource, nonce)
    }
    member.start((connection) => connection.claim(claim), {
      onLate,
      onAnswer: (reply) => {
        if (isCurrent()) this.#answered(vote, reply, sentAt)
        else onLate(reply)
      },
      onFailure: (error) => {
        if (!isCurrent()) return
        vote.state = 'failed'
        this.#failure ??= error
        this.#decide()
      },
    })
  }

  #claimOf({ vote, mode, adopts }: Question, floor: number): ClaimRequest {
    const { resource, permits, capacity, maxHoldMs, block, info } = this.request
    const [leaseMs, presenceMs] = [this.#leaseMs, this.#presenceMs]
    const id = vote.nonce
    const claim = {
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
    return adopts ? { ...claim, adopts } : claim
  }

  #answered(vote: Vote, reply: ClaimReply, sentAt: number): void {
    if (reply.status === 'granted') {
      if (this.#mayCount(vote)) vote.granted(reply, sentAt)
    } else if (reply.status === 'waiting') vote.waiting(reply, sentAt)
    else {
      vote.state = reply.reason === 'gone' ? 'gone' : 'busy'
      if (reply.reason === 'capacity') this.#refusal = reply
    }
    this.#decide()
  }

  /** A member told that it has promoted the claim. false: it has no such claim. */
  onGranted(member: Member, nonce: string, fence: number): boolean {
    const vote = this.votes.of(member)
    if (vote.nonce !== nonce || this.phase === 'over') return false
    // A late one belongs to an earlier stay in line.
    if (vote.canBeGranted(fence) && this.#mayCount(vote)) {
      vote.promoted(fence, this.#presenceMs, this.request.maxHoldMs)
      this.#decide()
    }
    return true
  }

  /**
   * Whether a grant that comes now may count. One that comes to a hold later must find a majority
   * without it: otherwise another client may have held the lock in between.
   */
  #mayCount(vote: Vote): boolean {
    const mayCount = this.phase !== 'held' || this.votes.coveredUntil > this.#context.env.now()
    if (!mayCount) this.#giveBack(vote)
    return mayCount
  }

  /** A member has revoked the claim. */
  onRevoked(member: Member, nonce: string): void {
    const vote = this.votes.of(member)
    if (vote.nonce !== nonce || this.phase === 'over') return
    // Also where the answer that grants it is still under way: that is given back.
    vote.state = 'gone'
    this.#decide()
  }

  /** A member failed: its waiters claim at another one. */
  onFailure(member: Member): void {
    if (this.usher === member && (this.phase === 'line' || this.phase === 'collecting')) this.#abandon()
  }

  /** Something is known that was not known before. */
  #decide(): void {
    if (this.phase === 'asking') this.#decideAsking()
    else if (this.phase === 'line') this.#decideInLine()
    else if (this.phase === 'collecting') this.#decideCollecting()
    else if (this.phase === 'agreeing') this.#decideAgreeing()
    else if (this.phase === 'held' && !this.votes.canBeMajority('granted')) this.#lose()
  }

  #decideAsking(): void {
    const usher = this.usher && this.votes.of(this.usher).state
    const isQueued = this.request.mode === 'queue'
    if (usher === 'waiting' && isQueued) return this.#enterLine()
    if (this.#isUsherOnly) return this.#decideByUsher(usher)
    // Others wait there, also where the other members have room for one more reader.
    if (usher === 'busy' && this.request.mode === 'try') return this.#refuse(this.#refusal ?? BUSY)
    if (this.votes.canBeMajority('granted')) {
      // The usher may have promoted another claim: that one must not be overtaken. Of a reader, the
      // other members cannot know whether a writer waits.
      const isWaitedFor = usher === 'asked' && (this.#isShared || !this.#isGraceOver)
      if (!isWaitedFor) this.#agree()
      else if (!this.#isShared) this.#startGrace()
    } else if (!this.votes.canBeMajority('granted', 'asked')) this.#noMajority()
  }

  get #isShared(): boolean {
    return this.request.permits < this.request.capacity
  }

  #decideByUsher(usher: VoteState | null): void {
    if (usher === 'asked') return
    if (usher === 'granted') {
      this.#context.contention.forget(this.resource)
      this.#collect()
    } else if (this.#refusal) this.#refuse(this.#refusal)
    else this.#abandon()
  }

  /** Waits a moment for answers that are under way. */
  #startGrace(): void {
    this.#cancelGrace ??= this.#context.env.timer(
      this.#context.members.graceMs(this.#askedAt),
      () => {
        this.#isGraceOver = true
        this.#decide()
      },
      { keepAlive: false },
    )
  }

  #endGrace(): void {
    this.#cancelGrace?.()
    this.#cancelGrace = null
    this.#isGraceOver = false
  }

  #setTimer(ms: number, run: () => void): void {
    this.#cancelTimer()
    this.#cancelTimer = this.#context.env.timer(ms, run, { keepAlive: false })
  }

  #noMajority(): void {
    const usher = this.usher && this.votes.of(this.usher).state
    // The usher has not said yet whether it is worth waiting.
    if (usher === 'asked' && this.request.mode === 'queue') return
    if (!this.votes.canBeMajority(...ANSWERED, 'asked')) return this.fail(this.#unavailable())
    if (!this.votes.canBeMajority(...ANSWERED)) return
    if (this.#refusal) return this.#refuse(this.#refusal)
    if (this.request.mode === 'adopt') return this.#refuse({ status: 'refused', reason: 'gone' })
    if (this.request.mode === 'try') return this.#tryAgain(usher === 'granted')
    if (this.request.mode === 'queue' && usher === 'granted') return this.#collect()
    this.#abandon()
  }

  /** The error of a member that refuses the call as such, or the failure of all. */
  #unavailable(): unknown {
    const failure = this.#failure
    const isRefusal = failure instanceof HoldfastError && failure.code !== 'STORE_UNAVAILABLE'
    return isRefusal ? failure : this.#context.members.unavailable()
  }

  /** Two tries may have met, and split the votes: the one that has the usher goes on. */
  #tryAgain(hasUsher: boolean): void {
    if (!hasUsher || this.#tries >= MOST_TRIES) return this.#refuse(BUSY)
    this.#tries++
    this.#setTimer(TRY_PAUSE_MS * this.#tries * this.#context.env.random(), () => {
      this.#askAll(
        [...this.votes].filter(({ state }) => state === 'busy').map((vote) => ({ vote, mode: 'try' })),
      )
    })
  }

  #enterLine(): void {
    this.phase = 'line'
    this.#context.contention.note(this.resource)
    this.#cancelTimer()
    this.#endGrace()
    for (const vote of this.votes) if (vote.member !== this.usher) this.#giveBack(vote)
    this.#reply(this.waitingReply())
    this.#context.members.watch()
  }

  #decideInLine(): void {
    const { state } = this.votes.of(this.usher as Member)
    if (state === 'granted') this.#collect()
    else if (state !== 'waiting') this.#lose()
  }

  /** It is its turn in the usher's line: now the others, behind the release of the last holder. */
  #collect(): void {
    const { env, members } = this.#context
    this.phase = 'collecting'
    this.#endGrace()
    this.#askedAt = env.now()
    const usher = this.votes.of(this.usher as Member)
    this.#placeUntil = Math.min(usher.until, trustedUntil(env.now(), this.request.presenceMs))
    // A promotion refreshes nothing: the next pulse starts the lease.
    // With `maxHold`, only an answer of the usher tells how long its grant lasts.
    const isKnown = this.request.maxHoldMs === null
    const restMs = isKnown ? Math.max(1, leaseForMs(usher.until - env.now())) : Infinity
    this.#leaseMs = Math.min(this.#leaseMs, restMs)
    this.#presenceMs = Math.min(this.#presenceMs, restMs)
    this.#reply(this.waitingReply())
    members.watch()
    // Another claim, which has another usher, may wait for this one on the other members.
    this.#setTimer(members.roundTripsMs(COLLECT_MS) * (1 + env.random()), () => this.#abandon())
    const others = members.up.map((member) => this.votes.of(member))
    const missing = others.filter(({ state }) => state !== 'granted' && state !== 'asked')
    this.#askAll(missing.map((vote) => ({ vote, mode: 'queue' })))
  }

  #decideCollecting(): void {
    if (this.votes.of(this.usher as Member).state === 'gone') return this.#abandon()
    if (this.votes.canBeMajority('granted')) this.#agree()
    else if (!this.votes.canBeMajority('granted', 'asked', 'waiting')) this.#abandon()
  }

  /** A majority has granted it: is there one fence that a majority has? */
  #agree(): void {
    this.phase = 'agreeing'
    this.#target = this.votes.highestFence
    const { hints, members } = this.#context
    if (this.votes.agreeOn(this.#target, this.#context.env.now())) {
      hints.agreed()
      return this.#hold()
    }
    hints.differed(this.#target)
    this.#setTimer(members.roundTripsMs(COLLECT_MS), () => this.#abandon())
    this.#decide()
  }

  #decideAgreeing(): void {
    if (this.votes.agreeOn(this.#target, this.#context.env.now())) return this.#hold()
    // An answer that is under way may have the fence as well, and spare the second round.
    const isExpected = this.#raises === 0 && this.votes.count('asked') > 0 && !this.#isGraceOver
    if (isExpected || this.#raisesUnderWay > 0) {
      if (isExpected) this.#startGrace()
      return
    }
    const granted = this.votes.granted.filter(({ member }) => member.isUp)
    const { majority } = this.#context.members
    const isPossible = granted.length + this.votes.count('asked', 'waiting') >= majority
    if (!isPossible || this.#raises >= MOST_RAISES) return this.#abandon()
    if (granted.length < majority) return
    // A newer fence was given out somewhere: only one above it can be agreed on.
    const newest = granted.reduce((most, vote) => Math.max(most, vote.fence, vote.newest), 0)
    if (newest > this.#target || granted.some((vote) => vote.newest >= this.#target))
      this.#target = newest + FENCE_STEP
    this.#raise()
  }

  /** Asks the members with another fence for the target. */
  #raise(): void {
    this.#raises++
    const target = this.#target
    const now = this.#context.env.now()
    // Also those that may have lapsed: their answers tell.
    for (const vote of this.votes.granted)
      if ((vote.fence !== target || vote.until <= now) && vote.member.isUp) void this.#raiseOn(vote, target)
    if (this.#raisesUnderWay === 0) this.#abandon()
  }

  async #raiseOn(vote: Vote, first: number): Promise<void> {
    const { resource, presenceMs, block } = this.request
    const leaseMs = this.#leaseMs
    const { nonce, member } = vote
    const sentAt = this.#context.env.now()
    const beat: Beat = { resource, id: nonce, leaseMs, presenceMs, fences: { first, count: block } }
    vote.raising(first)
    this.#raisesUnderWay++
    try {
      const [reply] = await member.call((connection) => connection.pulse([beat]))
      if (reply && vote.nonce === nonce) this.onBeat(vote, reply, sentAt)
    } catch {
      // The member rests from now on; the others may be enough.
    }
    this.#raisesUnderWay--
    this.#decide()
  }

  /** What a member has answered to a beat. */
  onBeat(vote: Vote, reply: BeatReply, sentAt: number): void {
    if (!vote.isOwed || this.phase === 'over') return
    const before = vote.state
    const isNew = reply.status === 'held' && before !== 'granted'
    if (isNew && !this.#mayCount(vote)) return
    if (!vote.beaten(reply, sentAt)) {
      // Held under another fence: a claim that was long under way has made it anew.
      if (reply.status !== 'gone') this.#context.giveBack(vote.member, this.resource, vote.nonce)
      vote.state = 'gone'
    }
    if (vote.state !== before) this.#decide()
  }

  #hold(): void {
    // The first grants may have lapsed while the last one was waited for.
    if (this.votes.coveredUntil <= this.#context.env.now()) return this.#abandon()
    this.#cancelTimer()
    this.#endGrace()
    this.phase = 'held'
    this.#tellDecided()
    this.fence = this.#target
    this.endFence = this.#target + this.request.block
    if (this.#isAnswered) return this.#context.onGranted(this)
    const { fence, leaseMs: coveredMs, isWanted } = this.heldReply(this.#startedAt)
    // The members were asked later, but no lease is longer than what was asked for.
    const leaseMs = Math.min(coveredMs, this.request.leaseMs)
    const granted = { status: 'granted', fence, leaseMs } as const
    this.#reply(isWanted === undefined ? granted : { ...granted, isWanted })
  }

  /** Further fences, behind all that a member may have given to this claim. */
  nextFences(): number {
    return Math.max(this.endFence, this.votes.highestFence + 1)
  }

  /** Asks a member that does not have the claim, while the others hold it. */
  join(vote: Vote): void {
    this.#leaseMs = this.request.leaseMs
    this.#presenceMs = this.request.presenceMs
    this.#askAll([{ vote, mode: 'try' }])
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

  /** Resolves when it is decided, or after that time. */
  decided(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#context.env.timer(withinMs, resolve, { keepAlive: true })
      this.#onDecided.push(() => {
        cancel()
        resolve()
      })
    })
  }

  #tellDecided(): void {
    for (const tell of this.#onDecided.splice(0)) tell()
  }

  heldReply(sentAt: number): Held {
    const leaseMs = Math.max(0, leaseForMs(this.votes.coveredUntil - sentAt))
    const held = { status: 'held', fence: this.fence, leaseMs } as const
    const isWanted = this.#context.members.tellWanted || this.votes.isWanted ? this.votes.isWanted : undefined
    return isWanted === undefined ? held : { ...held, isWanted }
  }

  /** The present state, for a claim that is sent again. */
  reply(): ClaimReply {
    if (this.phase !== 'held') return this.waitingReply()
    const { fence, leaseMs } = this.heldReply(this.#context.env.now())
    return { status: 'granted', fence, leaseMs }
  }

  waitingReply(): Waiting {
    const vote = this.usher ? this.votes.of(this.usher) : null
    const { place } = vote ?? {}
    const isInLine = vote?.state === 'waiting' || vote?.state === 'granted'
    const isCollecting = this.phase === 'collecting' || this.phase === 'agreeing'
    const leftMs = isInLine ? Math.min(vote.until, this.#placeUntil) - this.#context.env.now() : 0
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
    this.#tellDecided()
    this.#cancelTimer()
    this.#endGrace()
    // If it was not answered, nobody waits for that any more.
    queueMicrotask(() => this.#reply(BUSY))
    return this.votes.owed
  }

  #giveBack(vote: Vote): void {
    if (vote.isOwed) this.#context.giveBack(vote.member, this.resource, vote.nonce)
    vote.state = 'none'
  }

  #giveBackAll(): void {
    for (const vote of this.end()) this.#giveBack(vote)
  }

  /** It could not be asked for. */
  fail(error: unknown): void {
    this.#giveBackAll()
    this.#context.onRefused(this)
    this.#reject(error)
  }

  #refuse(reply: ClaimReply): void {
    this.#giveBackAll()
    this.#context.onRefused(this)
    this.#reply(reply)
  }

  /**
   * The majority, or the place in line, is gone. What other members have is given back a little
   * later: another client may be about to adopt it there.
   */
  #lose(): void {
    const owed = this.end()
    const giveBack = (): void => {
      for (const vote of owed) this.#giveBack(vote)
    }
    if (owed.length > 0) this.#context.env.timer(COLLECT_MS, giveBack, { keepAlive: false })
    this.#context.onLost(this)
  }

  /** No majority: everything is given back, and the engine claims anew after a random pause. */
  #abandon(): void {
    const { env } = this.#context
    if (this.request.mode === 'try') return this.#refuse(BUSY)
    this.#giveBackAll()
    this.#reply(this.waitingReply())
    const pauseMs = LONGEST_PAUSE_MS * env.random()
    env.timer(pauseMs, () => this.#context.onLost(this), { keepAlive: true })
  }
}
