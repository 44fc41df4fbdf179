import { formatMs } from '../base/duration.js'
import { HoldfastError } from '../base/errors.js'
import type { Beat, ClaimMode, ClaimRequest, Waiting } from '../contract/store.js'
import { Baton } from './baton.js'

/** What the caller wants, checked and in milliseconds. */
export interface ClaimSpec {
  readonly resource: string
  readonly permits: number
  readonly capacity: number
  readonly leaseMs: number
  readonly presenceMs: number
  readonly maxHoldMs: number | null
  /** The explicit owner; null: the acquisition itself is the owner. */
  readonly owner: string | null
  readonly label: string | null
  /** Left out: it joins the line, or is tried if its caller does not wait. */
  readonly mode?: 'steal' | 'adopt'
  /** With `adopt`: the hold whose place it takes. */
  readonly adopts?: { readonly id: string; readonly fence: number }
  /** It is given up as soon as its client closes: nothing is to be finished under it. */
  readonly endsAtClose?: boolean
  /** Neighbours in this process who ask for the same may wait for it here, and have it passed on to them. */
  readonly isPassedOn?: boolean
  /** Neighbours in this process who ask for the same and stand right behind it in the store's line may have it passed on to them. */
  readonly isFollowed?: boolean
}

/** One hold that stands on a claim. There are several where a flow or an owner has entered again, and where readers share it. */
export interface Entry {
  readonly claim: Claim
  /** Its own where it is one of several readers; who has entered again has that of the outer hold. */
  readonly fence: number
  permits: number
  /** Set for a hold that its holder has to release: what tells whether anybody still can. */
  trace?: Trace | null
}

/** How a hold is noticed that was forgotten. It must not keep the hold alive itself. */
export interface Trace {
  /** It was garbage-collected without a release. */
  isForgotten: boolean
  /** Where it was acquired; null unless NODE_DEBUG asks for it. */
  readonly stack: string | null
  /** What the release would have told. */
  readonly onRelease: () => void
}

/**
 * - `queued`: behind a neighbour in this process; the store does not know of it
 * - `asking`: sent, or about to be sent; the store has not answered
 * - `waiting`: in line
 * - `held`: given out to the caller
 * - `lost`: was held, and can no longer be trusted
 * - `ended`: released, or given up before it was held
 */
export type Phase = 'queued' | 'asking' | 'waiting' | 'held' | 'lost' | 'ended'

/** What becomes of a claim, told to whoever asked for it. */
export interface ClaimListener {
  /** It is held from now on. */
  onHeld(): void
  /** It is held as before, with whatever the store has given in addition. */
  onRenewed(): void
  /** How many further fences could be used now: it is about to be spoken of. */
  fencesWanted(): number
  /** Its place in line is gone; it has to be asked for anew. */
  onGone(): void
  /** The store has been silent for too long. */
  onUnavailable(cause: unknown): void
  /** It was held, and is lost. */
  onLost(): void
  /** Its hold has ended, and it is to be had: whether a neighbour has it from now on. */
  passOn(): boolean
  /** It gets what the claim of a neighbour has: its place in line, or its grant. */
  takeOver(from: Claim): void
  /** It is on its way back to the store. */
  onReleased(): void
  /** Whoever waits for it is sent away. */
  fail(error: HoldfastError): void
}

/** The clocks of two machines run apart by far less than this. */
const DRIFT_RATE = 0.01
/** Covers the rounding on the way. */
const ROUNDING_MS = 1

/** How much earlier than the store we take a deadline to be over. */
export function driftMs(durationMs: number): number {
  return ROUNDING_MS + durationMs * DRIFT_RATE
}

/** The lease to ask for so that `validMs` of it can be relied on. */
export function leaseForMs(validMs: number): number {
  return (validMs + ROUNDING_MS) / (1 - DRIFT_RATE)
}

/** The client's side of one claim: what it asked for, and what it knows. All times are `env.now()`. */
export class Claim {
  phase: Phase = 'asking'
  /** New for each attempt. */
  id: string
  fence = 0
  /** The fence by which the store knows it: that of the first hold, where it was passed on since. */
  grant = 0
  /** What can be passed on with it; null: nothing, it ends with its hold. */
  baton: Baton | null = null
  permits: number
  /** Since when the hold that stands on it lasts. */
  heldAt = 0
  /** The end of what the store surely grants, if nothing renews it. */
  validUntil = 0
  /** The sending of the last request that the store has answered; before that, of the first one. */
  acknowledgedAt = 0
  /** While it waits: until when the store surely keeps its place, if nothing renews it. */
  #placeUntil = 0
  /** A grant that is not above this fence was given to an earlier stay in line under the same id, which has lapsed since. */
  #grantsAbove = 0
  /** A reader waits in the place of a neighbour who gave up. It may be a grant by now, older than others that this reader has seen. */
  hasOldPlace = false
  #isKept = false
  /** The store has told of a grant of its own: nobody before it holds any more. */
  hasHeard = false
  /** The place in line of the one to whom it was passed on has been given up; null: nothing has to be told. */
  handedOn: Promise<boolean> | null = null
  /** What the last answer gave, where the store keeps claims by its session and not for as long as they ask. */
  sessionMs = Infinity
  /** When to speak of this claim in a pulse. */
  dueAt = Infinity
  /** How long after the last answer that is. */
  intervalMs = 0
  /** How many waited ahead of it by the last answer, and when that last changed. */
  #ahead: number | null = null
  #aheadChangedAt = -Infinity
  /** A pulse with this claim is on its way. */
  isBeating = false
  /** Something has happened since that beat was sent: ask again as soon as it is answered. */
  isHurried = false
  /** Since when pulses have gone unanswered; null: the last one was answered. */
  silentSince: number | null = null
  /** What the last request came to that went unanswered. */
  silentBecause: unknown
  /** Mostly one. Small lists, because there is a claim for every hold, and a set costs as much as a timer. */
  #entries: Entry[] = []
  /** All its holds were forgotten: it is renewed no more, and ends with its lease. */
  isForgotten = false
  lostBecause: HoldfastError | null = null
  #lossListeners: ((reason: HoldfastError) => void)[] = []
  #endListeners: (() => void)[] = []

  constructor(
    readonly spec: ClaimSpec,
    readonly info: string,
    readonly listener: ClaimListener,
    id: string,
  ) {
    this.id = id
    this.permits = spec.permits
  }

  get resource(): string {
    return this.spec.resource
  }

  /** Whether the caller still waits for it. */
  get isPending(): boolean {
    return this.phase === 'asking' || this.phase === 'waiting'
  }

  /**
   * One more hold of the same owner, or of one more reader, stands on it from this moment: counted before anybody awaits, or the
   * last other one could release it meanwhile.
   */
  enter(permits: number, fence = this.fence): Entry {
    if (permits > this.permits) throw upgradeRefused(this.resource)
    const entry: Entry = { claim: this, fence, permits }
    this.isForgotten = false
    this.#entries.push(entry)
    return entry
  }

  leave(entry: Entry): void {
    this.#entries = without(this.#entries, entry)
  }

  /** Whether it is held, and another hold than those stands on it. */
  isHeldBeside(own: ReadonlySet<Entry>): boolean {
    return this.phase === 'held' && this.#entries.some((entry) => !own.has(entry))
  }

  /** Whether that hold still stands on it. */
  has(entry: Entry): boolean {
    return this.#entries.includes(entry)
  }

  /** Holds that nobody can release any more stand on it no longer. Gives those that were found now. */
  dropForgotten(): Entry[] {
    const forgotten = this.#entries.filter(({ trace }) => trace?.isForgotten === true)
    if (forgotten.length === 0) return forgotten
    this.#entries = this.#entries.filter((entry) => !forgotten.includes(entry))
    this.isForgotten = this.#entries.length === 0
    return forgotten
  }

  get isEntered(): boolean {
    return this.#entries.length > 0
  }

  /** Readers of this process may stand on it side by side. */
  get isShared(): boolean {
    return this.spec.isPassedOn === true && this.spec.permits < this.spec.capacity
  }

  /** Whether a hold with that fence stands on it. */
  hasFence(fence: number): boolean {
    return this.#entries.some((entry) => entry.fence === fence)
  }

  /** Whether a hold with another fence stands on it, too: one of a neighbour. */
  isSharedBeside(fence: number): boolean {
    return this.#entries.some((entry) => entry.fence !== fence)
  }

  /** What the holds that stand on it need together: the inner ones share what the outer one has. */
  get neededPermits(): number {
    let most = 0
    for (const { permits } of this.#entries) most = Math.max(most, permits)
    return most
  }

  isValid(now: number): boolean {
    return this.phase === 'held' && now < this.validUntil
  }

  /** Whether the hold that stood on it may be followed by a neighbour's at this moment, or a reader's be joined by one. */
  canGoOn(now: number): boolean {
    if (now >= this.validUntil || this.permits !== this.spec.permits) return false
    return this.baton?.canGoOn(now) === true
  }

  /** Whether they ask for the same in the same words: what the store keeps and shows of one is right for the other. */
  isLike({ info, spec }: Claim): boolean {
    const { leaseMs, presenceMs, permits } = this.spec
    return (
      info === this.info &&
      spec.leaseMs === leaseMs &&
      spec.presenceMs === presenceMs &&
      spec.permits === permits
    )
  }

  /**
   * Whether it may have what the one before it leaves. One that still asks has its place all the same and comes next, by the store; so do
   * one that asks for something else, and one that has heard of its own grant.
   */
  canInherit(claim: Claim): boolean {
    const isWaiting = this.phase === 'waiting' && !this.hasHeard
    return isWaiting && this.spec.isFollowed === true && this.isLike(claim)
  }

  /** It ends with its present hold, for which something was done that the next one must not inherit. */
  keep(): void {
    this.#isKept = true
    this.baton?.keep()
  }

  /** Those who stand right behind it in line, and may have it after each other, with the fences that follow that grant. */
  followedBy(heirs: readonly string[], grant: number, now: number): void {
    if (this.#isKept || this.baton) return
    this.baton = new Baton(1 + heirs.length, Infinity, heirs)
    this.baton.granted(grant, now)
    if (this.phase === 'held') this.baton.takeFence()
  }

  /** Whether less than half of a lease is left: nobody should be given a hold that is about to end. */
  isAboutToEnd(now: number): boolean {
    return this.validUntil - now < Math.min(this.spec.leaseMs, this.sessionMs) / 2
  }

  /** From now on it stands for what the other stood for, which ends: the place in line, or the grant, and what was said about it. */
  takeOver(other: Claim): void {
    this.phase = 'waiting'
    this.id = other.id
    this.grant = other.grant
    this.baton = other.baton
    this.validUntil = other.validUntil
    this.acknowledgedAt = other.acknowledgedAt
    // A push that is still under way may tell of the grant once more: its fences have been given out.
    this.#grantsAbove = Math.max(other.#grantsAbove, other.fence)
    this.#placeUntil = other.#placeUntil
    this.hasOldPlace = this.isShared
    this.sessionMs = other.sessionMs
    this.dueAt = other.dueAt
    this.intervalMs = other.intervalMs
    this.isBeating = other.isBeating
    this.isHurried = other.isHurried
    this.silentSince = other.silentSince
    this.silentBecause = other.silentBecause
  }

  request(mode: ClaimMode, floor: number): ClaimRequest {
    const { resource, permits, capacity, leaseMs, presenceMs, maxHoldMs, adopts } = this.spec
    const request = {
      resource,
      id: this.id,
      permits,
      capacity,
      leaseMs,
      presenceMs,
      maxHoldMs,
      mode: this.spec.mode ?? mode,
      floor,
      block: this.baton?.block ?? 1,
      info: this.info,
    }
    return adopts ? { ...request, adopts } : request
  }

  beat(): Beat {
    const { leaseMs, presenceMs } = this.spec
    const common = { resource: this.resource, id: this.id, leaseMs, presenceMs }
    const block = Math.min(this.listener.fencesWanted(), this.baton?.furtherFences ?? 0)
    if (block > 0) return { ...common, block }
    // What was given back is said again and again: the reply to the first time may have been lost.
    return this.permits < this.spec.permits ? { ...common, permits: this.permits } : common
  }

  /** It was granted and passed on, and there is no fence left to give it out with: the store must be asked for more. */
  get needsFences(): boolean {
    return this.phase === 'waiting' && this.grant > 0 && this.baton?.isOutOfFences === true
  }

  /** How long the store keeps this claim after a pulse that it has answered. */
  get aliveMs(): number {
    return Math.min(this.phase === 'held' ? this.spec.leaseMs : this.spec.presenceMs, this.sessionMs)
  }

  /**
   * The first sending under this id. A push that overtakes the reply is counted from here, also when the request was repeated; but where
   * the store's session decides how long a place is kept, only a reply can tell, and such a push has to be confirmed.
   */
  asked(now: number, { isKeptAsAsked, baton }: { isKeptAsAsked: boolean; baton: Baton | null }): void {
    this.grant = 0
    this.hasOldPlace = false
    this.hasHeard = false
    this.silentSince = null
    this.silentBecause = undefined
    this.baton = baton
    this.acknowledgedAt = now
    this.#placeUntil = isKeptAsAsked ? now + this.spec.presenceMs : now
  }

  /**
   * The store has said that the place in line is kept. The grant, if there is one, stays: this may be an old answer, from before it, and a grant that
   * was forgotten would be believed once more, with fences that were given out.
   */
  keptPlace(sentAt: number, reply: Waiting): void {
    this.acknowledgedAt = Math.max(this.acknowledgedAt, sentAt)
    this.#placeUntil = Math.max(this.#placeUntil, sentAt + reply.presenceMs)
    this.#grantsAbove = Math.max(this.#grantsAbove, reply.grantsAbove)
  }

  /** The store has said how many wait ahead of it. Gives how long that has not changed: for ever, at first. */
  noteAhead(ahead: number, now: number): number {
    if (this.#ahead !== null && ahead !== this.#ahead) this.#aheadChangedAt = now
    this.#ahead = ahead
    return now - this.#aheadChangedAt
  }

  /** Whether a grant with this fence is of the present stay in line. */
  canBeGranted(fence: number): boolean {
    return fence > this.#grantsAbove
  }

  /**
   * Until when a hand-off can be trusted that nothing but a push tells of: promotion does not refresh the deadline of a waiter,
   * and it came after the last answer that still said "waiting".
   */
  handedOffUntil(): number {
    const until = Math.min(this.#placeUntil, this.acknowledgedAt + (this.spec.maxHoldMs ?? Infinity))
    return until - driftMs(this.spec.presenceMs)
  }

  /** The store has granted the place of somebody else, whose fences are not for this one: it has to ask for others. */
  takeOldGrant(grant: number, now: number): void {
    if (this.grant === grant) return
    this.grant = grant
    this.baton?.granted(grant, now)
    this.baton?.dropFences()
  }

  /** `grant` is the fence by which the store knows it. */
  hold(grant: number, validUntil: number, now: number): void {
    this.phase = 'held'
    // One that was passed on begins now; the store counts the first one from the asking.
    this.heldAt = this.grant === grant ? now : Math.min(now, this.acknowledgedAt)
    // Who stood behind it at an earlier grant need not do so now.
    if (this.baton?.hasHeirs && this.baton.grant !== grant) this.baton = null
    if (this.baton && this.grant !== grant) this.baton.granted(grant, now)
    this.grant = grant
    this.fence = this.baton?.takeFence() ?? grant
    this.validUntil = validUntil
    this.listener.onHeld()
  }

  /** A renewal never shortens. */
  renew(validUntil: number): void {
    this.validUntil = Math.max(this.validUntil, validUntil)
  }

  /** Its validity has run out. */
  expire(now: number): void {
    const { maxHoldMs } = this.spec
    // Roughly, because only the store knows when it began: this is for people.
    const isOver = maxHoldMs !== null && now - this.heldAt >= maxHoldMs * 0.9
    this.lose(isOver ? `its maxHold of ${formatMs(maxHoldMs)} is over` : 'it was not renewed in time')
  }

  lose(message: string, cause?: unknown): void {
    if (this.phase !== 'held') return
    this.phase = 'lost'
    this.lostBecause = lossError(this.resource, message, cause)
    this.listener.onLost()
    const listeners = this.#lossListeners
    this.#lossListeners = []
    for (const tell of listeners) tell(this.lostBecause)
    this.#tellEnd()
  }

  /** Given back: it is over, and that is no loss. */
  end(): void {
    this.phase = 'ended'
    this.#lossListeners = []
    this.#tellEnd()
  }

  /** The returned function ends the interest. */
  onLoss(tell: (reason: HoldfastError) => void): () => void {
    if (this.lostBecause) tell(this.lostBecause)
    else this.#lossListeners.push(tell)
    return () => {
      this.#lossListeners = without(this.#lossListeners, tell)
    }
  }

  /** Lost or given back; at once if it is so already. The returned function ends the interest. */
  onEnd(tell: () => void): () => void {
    const listener = (): void => tell()
    if (this.phase === 'lost' || this.phase === 'ended') tell()
    else this.#endListeners.push(listener)
    return () => {
      this.#endListeners = without(this.#endListeners, listener)
    }
  }

  #tellEnd(): void {
    const listeners = this.#endListeners
    this.#endListeners = []
    for (const tell of listeners) tell()
  }
}

function without<T>(list: T[], item: T): T[] {
  return list.filter((each) => each !== item)
}

export function upgradeRefused(resource: string): HoldfastError {
  const message = `'${resource}' is held for reading here and cannot be turned into a hold for writing; release it first, or ask for writing in the first place`
  return new HoldfastError('UPGRADE_REFUSED', message, { resource })
}

function lossError(resource: string, message: string, cause: unknown): HoldfastError {
  const details = cause === undefined ? { resource } : { resource, cause }
  return new HoldfastError('HOLD_LOST', `The hold of '${resource}' was lost: ${message}`, details)
}
