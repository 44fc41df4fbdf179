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
import type { FenceHints } from './fence-hints.js'
import type { Member } from './member.js'
import type { Members } from './members.js'
import { Vote } from './vote.js'

/** A claim that gets no majority within this time, and up to twice as long, gives up. */
const COLLECT_MS = 250
/** The longest pause before a claim that got no majority is made anew. */
const LONGEST_PAUSE_MS = 100
/** How often a try that has the usher asks the others again: they may serve another try. */
const MOST_TRIES = 3
const TRY_PAUSE_MS = 3
/** How often members are asked for one fence before the claim gives up. */
const MOST_RAISES = 6
/** How far above a newer fence the next attempt is: others may be on their way. */
export const FENCE_STEP = 1000

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

export interface QuorumClaimContext {
  readonly env: Env
  readonly members: Members
  readonly hints: FenceHints
  /** Gives back what a member may have. Never fails. */
  giveBack(member: Member, resource: string, nonce: string): void
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
  readonly votes: readonly Vote[]
  /** The answer to the engine's call. */
  readonly answer: Promise<ClaimReply>
  /** Its permits were reduced since. */
  isShrunk = false
  readonly #context: QuorumClaimContext
  /** Before anything was sent: the lease counts from here. */
  readonly #startedAt: number
  #askedAt = 0
  /** The floor that the members were given last. */
  #hint = 0
  #asks = 0
  #tries = 1
  /** The fence that a majority has to acknowledge, while it agrees. */
  #target = 0
  #raises = 0
  #raisesUnderWay = 0
  /** Once it has the usher's grant: the engine is promised the place for no longer than this. */
  #placeUntil = Infinity
  #isGraceOver = false
  #failure: unknown = null
  #refusal: ClaimReply | null = null
  #cancelTimer: Cancel = nothing
  #resolve: (reply: ClaimReply) => void = nothing
  #reject: (error: unknown) => void = nothing
  #isAnswered = false

  constructor(
    readonly request: ClaimRequest,
    context: QuorumClaimContext,
  ) {
    this.#context = context
    this.#startedAt = context.env.now()
    this.votes = context.members.all.map((member) => new Vote(member))
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

  get #majority(): number {
    return this.#context.members.majority
  }

  /** Sends the claim to all members that vote. `adopts`: by member, the claim to adopt there. */
  start(adopts?: ReadonlyMap<Member, { id: string; fence: number }>): void {
    const { env, members } = this.#context
    const voters = members.ranked(this.resource)
    this.usher = voters[0] ?? null
    this.#askedAt = env.now()
    const { mode } = this.request
    const floor = this.#floor()
    for (const member of voters) {
      if (adopts) this.#adopt(member, adopts.get(member), floor)
      else this.#ask(this.#voteOf(member), mode === 'queue' && member !== this.usher ? 'try' : mode, floor)
    }
    this.#decide()
  }

  #adopt(member: Member, adopts: { id: string; fence: number } | undefined, floor: number): void {
    const vote = this.#voteOf(member)
    if (adopts) this.#ask(vote, 'adopt', floor, adopts)
    else vote.state = 'gone'
  }

  #voteOf(member: Member): Vote {
    return this.votes[member.index] as Vote
  }

  /** Above every fence that this client has seen, also its own. */
  #floor(): number {
    this.#hint = this.#context.hints.floor(Math.max(this.request.floor, this.endFence))
    return this.#hint
  }

  #ask(vote: Vote, mode: ClaimMode, floor: number, adopts?: { id: string; fence: number }): void {
    const { env } = this.#context
    const { member } = vote
    const sentAt = env.now()
    const nonce = `${this.request.id}~${++this.#asks}`
    vote.asked(nonce, sentAt)
    const { adopts: _adopts, ...request } = this.request
    const claim = { ...request, id: nonce, mode, floor, ...(adopts ? { adopts } : {}) }
    const isCurrent = (): boolean =>
      vote.nonce === nonce && (vote.state === 'asked' || vote.state === 'failed')
    const onLate = (reply: ClaimReply): void => {
      const isWanted = this.phase !== 'over' && vote.nonce === nonce && vote.isOwed
      if (reply.status !== 'refused' && !isWanted) this.#context.giveBack(member, this.resource, nonce)
    }
    member
      .call((connection) => connection.claim(claim), onLate)
      .then(
        (reply) => {
          if (this.phase !== 'over' && isCurrent()) this.#answered(vote, reply, sentAt)
          else onLate(reply)
        },
        (error: unknown) => {
          if (this.phase === 'over' || !isCurrent()) return
          vote.state = 'failed'
          this.#failure ??= error
          this.#decide()
        },
      )
  }

  #answered(vote: Vote, reply: ClaimReply, sentAt: number): void {
    if (reply.status === 'granted') vote.granted(reply, sentAt)
    else if (reply.status === 'waiting') vote.waiting(reply, sentAt)
    else {
      vote.state = reply.reason === 'gone' ? 'gone' : 'busy'
      if (reply.reason === 'capacity') this.#refusal = reply
    }
    this.#decide()
  }

  /** A member told that it has promoted the claim. false: it has no such claim. */
  onGranted(member: Member, nonce: string, fence: number): boolean {
    const vote = this.#voteOf(member)
    if (vote.nonce !== nonce || this.phase === 'over') return false
    // A late one belongs to an earlier stay in line.
    if (vote.canBeGranted(fence)) {
      vote.promoted(fence, this.request.presenceMs, this.request.maxHoldMs)
      this.#decide()
    }
    return true
  }

  /** A member has revoked the claim. */
  onRevoked(member: Member, nonce: string): void {
    const vote = this.#voteOf(member)
    if (vote.nonce !== nonce || this.phase === 'over') return
    // Also where the answer that grants it is still under way: that is given back.
    vote.state = 'gone'
    this.#decide()
  }

  /** A member failed: its waiters claim at another one. */
  onFailure(member: Member): void {
    if (this.usher === member && (this.phase === 'line' || this.phase === 'collecting')) this.#abandon()
  }

  #count(...states: Vote['state'][]): number {
    let count = 0
    for (const { state } of this.votes) if (states.includes(state)) count++
    return count
  }

  /** Something is known that was not known before. */
  #decide(): void {
    if (this.phase === 'asking') this.#decideAsking()
    else if (this.phase === 'line') this.#decideInLine()
    else if (this.phase === 'collecting') this.#decideCollecting()
    else if (this.phase === 'agreeing') this.#decideAgreeing()
    else if (this.phase === 'held' && this.#count('granted') < this.#majority) this.#lose()
  }

  #decideAsking(): void {
    const granted = this.#count('granted')
    const asked = this.#count('asked')
    const usher = this.usher && this.#voteOf(this.usher).state
    const isQueued = this.request.mode === 'queue'
    if (usher === 'waiting' && isQueued) return this.#enterLine()
    // Others wait there, also where the other members have room for one more reader.
    if (usher === 'busy' && this.request.mode === 'try') return this.#refuse(this.#refusal ?? BUSY)
    if (granted >= this.#majority) {
      // The usher may have promoted another claim: that one must not be overtaken.
      if (usher === 'asked' && !this.#isGraceOver) this.#waitForUsher()
      else this.#agree()
    } else if (granted + asked < this.#majority) this.#noMajority()
  }

  #waitForUsher(): void {
    this.#setTimer(this.#context.members.graceMs(this.#askedAt), () => {
      this.#isGraceOver = true
      this.#decide()
    })
  }

  #setTimer(ms: number, run: () => void): void {
    this.#cancelTimer()
    this.#cancelTimer = this.#context.env.timer(ms, run, { keepAlive: false })
  }

  #noMajority(): void {
    const usher = this.usher && this.#voteOf(this.usher).state
    // The usher has not said yet whether it is worth waiting.
    if (usher === 'asked' && this.request.mode === 'queue') return
    const answered = this.#count('granted', 'busy', 'waiting', 'gone')
    if (answered + this.#count('asked') < this.#majority) return this.fail(this.#unavailable())
    if (answered < this.#majority) return
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
    this.#setTimer(TRY_PAUSE_MS * this.#context.env.random(), () => {
      const floor = this.#floor()
      for (const vote of this.votes) if (vote.state === 'busy') this.#ask(vote, 'try', floor)
      this.#decide()
    })
  }

  #enterLine(): void {
    this.phase = 'line'
    this.#cancelTimer()
    for (const vote of this.votes) if (vote.member !== this.usher) this.#giveBack(vote)
    this.#reply(this.waitingReply())
    this.#context.members.watch()
  }

  #decideInLine(): void {
    const { state } = this.#voteOf(this.usher as Member)
    if (state === 'granted') this.#collect()
    else if (state !== 'waiting') this.#lose()
  }

  /** It is its turn in the usher's line: now the others, behind the release of the last holder. */
  #collect(): void {
    const { env, members } = this.#context
    this.phase = 'collecting'
    const usher = this.#voteOf(this.usher as Member)
    this.#placeUntil = Math.min(usher.until, trustedUntil(env.now(), this.request.presenceMs))
    this.#reply(this.waitingReply())
    const floor = this.#floor()
    for (const member of members.up) {
      const vote = this.#voteOf(member)
      if (vote.state !== 'granted' && vote.state !== 'asked') this.#ask(vote, 'queue', floor)
    }
    members.watch()
    this.#setTimer(COLLECT_MS * (1 + env.random()), () => this.#abandon())
    this.#decide()
  }

  #decideCollecting(): void {
    if (this.#voteOf(this.usher as Member).state === 'gone') return this.#abandon()
    const granted = this.#count('granted')
    if (granted >= this.#majority) this.#agree()
    else if (granted + this.#count('asked', 'waiting') < this.#majority) this.#abandon()
  }

  /** A majority has granted it: is there one fence that a majority has? */
  #agree(): void {
    this.phase = 'agreeing'
    this.#setTimer(COLLECT_MS, () => this.#abandon())
    this.#target = this.#highest()
    this.#context.hints.answered(this.#hint, this.#target)
    if (this.#hasTarget()) this.#hold()
    else this.#raise()
  }

  #highest(): number {
    let highest = 0
    for (const { state, fence } of this.votes) if (state === 'granted') highest = Math.max(highest, fence)
    return highest
  }

  #hasTarget(): boolean {
    let exact = 0
    for (const { state, fence } of this.votes) if (state === 'granted' && fence === this.#target) exact++
    return exact >= this.#majority
  }

  #decideAgreeing(): void {
    if (this.#hasTarget()) return this.#hold()
    if (this.#raisesUnderWay > 0) return
    const granted = this.votes.filter(({ state, member }) => state === 'granted' && member.isUp)
    const isPossible = granted.length + this.#count('asked', 'waiting') >= this.#majority
    if (!isPossible || this.#raises >= MOST_RAISES) return this.#abandon()
    if (granted.length < this.#majority) return
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
    for (const vote of this.votes) {
      if (vote.state !== 'granted' || vote.fence === target || !vote.member.isUp) continue
      this.#raisesUnderWay++
      void this.#beat(vote, { fences: { first: target, count: this.request.block } }).then(() => {
        this.#raisesUnderWay--
        this.#decide()
      })
    }
    if (this.#raisesUnderWay === 0) this.#abandon()
  }

  /** One beat to one member, outside a pulse. null: no answer. */
  async #beat(vote: Vote, extra: Partial<Beat>): Promise<BeatReply | null> {
    const { env } = this.#context
    const sentAt = env.now()
    const { nonce } = vote
    const beat = { ...this.beatFor(vote), ...extra }
    if (extra.fences) vote.raising(extra.fences.first)
    try {
      const [reply] = await vote.member.call((connection) => connection.pulse([beat]))
      if (!reply || vote.nonce !== nonce || this.phase === 'over') return null
      this.onBeat(vote, reply, sentAt)
      return reply
    } catch {
      return null
    }
  }

  beatFor({ nonce }: Vote): Beat {
    const { resource, leaseMs, presenceMs } = this.request
    return { resource, id: nonce, leaseMs, presenceMs }
  }

  /** What a member has answered to a beat. */
  onBeat(vote: Vote, reply: BeatReply, sentAt: number): void {
    if (!vote.isOwed || this.phase === 'over') return
    const before = vote.state
    if (!vote.beaten(reply, sentAt)) {
      // Held under another fence: a claim that was long under way has made it anew.
      if (reply.status !== 'gone') this.#context.giveBack(vote.member, this.resource, vote.nonce)
      vote.state = 'gone'
    }
    if (vote.state !== before) this.#decide()
  }

  #hold(): void {
    this.#cancelTimer()
    this.phase = 'held'
    this.fence = this.#target
    this.endFence = this.#target + this.request.block
    if (this.#isAnswered) return this.#context.onGranted(this)
    const { fence, leaseMs, isWanted } = this.heldReply(this.#startedAt)
    const granted = { status: 'granted', fence, leaseMs } as const
    this.#reply(isWanted === undefined ? granted : { ...granted, isWanted })
  }

  /** Further fences, behind all that a member may have given to this claim. */
  nextFences(): number {
    let first = this.endFence
    for (const { state, fence } of this.votes) if (state === 'granted' && fence >= first) first = fence + 1
    return first
  }

  /** Asks a member that does not have the claim, while the others hold it. */
  join(vote: Vote): void {
    this.#ask(vote, 'try', this.#floor())
  }

  /** Whether members without the claim may be asked for it: it is as it was granted. */
  get canJoin(): boolean {
    const { mode, maxHoldMs } = this.request
    return this.phase === 'held' && !this.isShrunk && mode !== 'adopt' && maxHoldMs === null
  }

  /** The end of what a majority covers. */
  get coveredUntil(): number {
    const untils = this.votes.map(({ state, until }) => (state === 'granted' ? until : 0))
    return untils.sort((a, b) => b - a)[this.#majority - 1] ?? 0
  }

  heldReply(sentAt: number): Held {
    const leaseMs = Math.max(0, leaseForMs(this.coveredUntil - sentAt))
    const held = { status: 'held', fence: this.fence, leaseMs } as const
    const isWanted = this.#isWanted()
    return isWanted === undefined ? held : { ...held, isWanted }
  }

  /** undefined: a member cannot tell. */
  #isWanted(): boolean | undefined {
    let isWanted: boolean | undefined = false
    for (const vote of this.votes) {
      if (vote.state !== 'granted') continue
      if (vote.isWanted) return true
      if (vote.isWanted === undefined) isWanted = undefined
    }
    return isWanted
  }

  /** The present state, for a claim that is sent again. */
  reply(): ClaimReply {
    if (this.phase !== 'held') return this.waitingReply()
    const { fence, leaseMs } = this.heldReply(this.#context.env.now())
    return { status: 'granted', fence, leaseMs }
  }

  waitingReply(): Waiting {
    const vote = this.usher ? this.#voteOf(this.usher) : null
    const { place } = vote ?? {}
    const isInLine = vote?.state === 'waiting' || vote?.state === 'granted'
    const leftMs = isInLine ? Math.min(vote.until, this.#placeUntil) - this.#context.env.now() : 0
    return {
      status: 'waiting',
      presenceMs: Math.max(0, leftMs),
      isNext: place?.isNext ?? true,
      freeInMs: place?.freeInMs ?? null,
      grantsAbove: place?.grantsAbove ?? 0,
      ...(place?.ahead === undefined ? {} : { ahead: place.ahead }),
    }
  }

  /** Ends it. Gives what the members may still have of it. */
  end(): Vote[] {
    if (this.phase === 'over') return []
    this.phase = 'over'
    this.#cancelTimer()
    // Nobody waits for the answer any more, unless it follows.
    queueMicrotask(() => this.#reply(BUSY))
    return this.votes.filter(({ isOwed }) => isOwed)
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
    this.#reject(error)
  }

  #refuse(reply: ClaimReply): void {
    this.#giveBackAll()
    this.#reply(reply)
  }

  /** The majority, or the place in line, is gone. */
  #lose(): void {
    this.#giveBackAll()
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
