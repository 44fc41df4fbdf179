import { formatMs } from '../base/duration.js'
import { HoldfastError } from '../base/errors.js'
import type { HoldEnd } from '../base/events.js'
import type { Beat, Capabilities, ClaimMode, ClaimRequest, Waiting } from '../contract/store.js'
import { driftMs } from '../contract/validity.js'
import { Heartbeat } from './heartbeat.js'
import type { Request } from './request.js'
import { type Asked, isShared, type RequestSpec } from './spec.js'
import type { Successors } from './successors.js'
import { Turn } from './turn.js'

/**
 * - `asking`: sent, or about to be sent; the store has not answered
 * - `waiting`: in line
 * - `confirming`: a push told of the grant, and the next answer has to confirm it
 * - `held`: granted; it serves requests, or is about to
 * - `over`: given back, lost, or given up before it was held
 */
export type LeasePhase = 'asking' | 'waiting' | 'confirming' | 'held' | 'over'

/**
 * What the store knows of this client under one id: a place in line, then a grant. It serves
 * requests, one after the other or several readers at once. All times are `env.now()`.
 */
export class Lease {
  phase: LeasePhase = 'asking'
  /** The fence by which the store knows the grant; 0: not granted. */
  grant = 0
  permits: number
  /** The end of what the store surely grants, if nothing renews it. */
  validUntil = 0
  /** The sending of the last call that the store has answered; before that, of the first one. */
  acknowledgedAt = 0
  /** What the last answer gave, where the store keeps claims by its session. */
  sessionMs = Infinity
  /** How long it is kept after its last hold has gone, by the request that it served last. */
  lingerMs: number
  /** Until when it lingers, unless others want it; null: it does not linger. */
  lingersUntil: number | null = null
  /** All its holds were forgotten: it is renewed no more. */
  isForgotten = false
  /** Its holder wants it to end by itself: the store is asked about it, but it is not renewed. */
  isLeftToLapse = false
  /** Its id alone renews and releases it from now on: no late answer may give it back. */
  isHandedOver = false
  /** It joins the line only if fewer claims than that wait there; undefined: however many wait. */
  maxWaiters: number | undefined = undefined
  /** The ids of the claims behind it that may inherit the grant with that fence. */
  heirs: { readonly grant: number; readonly ids: string[] } | null = null
  readonly spec: RequestSpec
  readonly info: string
  readonly turn: Turn
  readonly heartbeat = new Heartbeat()
  /**
   * Mostly one. A list, because there is a lease for every hold, and a set costs as much as a
   * timer.
   */
  #served: Request[] = []
  /** While it waits: until when the store surely keeps its place, if nothing renews it. */
  #placeUntil = 0
  /**
   * The sending of the last call whose answer said that it waits; before that, of the first one.
   */
  #inLineAt = 0
  /**
   * A grant that is not above this fence was given to an earlier stay in line under the same id.
   */
  #grantsAbove = 0

  constructor(
    readonly id: string,
    { spec, info }: Asked,
    readonly successors: Successors,
    capabilities: Capabilities,
  ) {
    this.spec = spec
    this.info = info
    this.permits = spec.permits
    this.lingerMs = spec.lingerMs
    this.turn = new Turn(capabilities)
  }

  get resource(): string {
    return this.spec.resource
  }

  /** Whether it stands in line, or is about to. */
  get isPending(): boolean {
    return this.phase !== 'held' && this.phase !== 'over'
  }

  get isShared(): boolean {
    return isShared(this.spec)
  }

  /** The requests that it serves. */
  get served(): readonly Request[] {
    return this.#served
  }

  get isServing(): boolean {
    return this.#served.length > 0
  }

  /** Whether it is held, and serves nobody. */
  get isIdle(): boolean {
    return this.phase === 'held' && this.#served.length === 0
  }

  get isLingering(): boolean {
    return this.isIdle && this.lingersUntil !== null
  }

  isValid(now: number): boolean {
    return this.phase === 'held' && now < this.validUntil
  }

  /** Whether it is as it was granted, so that it may serve one more request. */
  canServeMore(now: number): boolean {
    return this.isValid(now) && this.permits === this.spec.permits && !this.turn.isClosed
  }

  /** Whether less than half of it is left: nobody should be given a hold that is about to end. */
  isAboutToEnd(now: number): boolean {
    return this.validUntil - now < Math.min(this.spec.leaseMs, this.sessionMs) / 2
  }

  /** How long the store keeps it after a pulse that it has answered. */
  get aliveMs(): number {
    return Math.min(this.phase === 'held' ? this.spec.leaseMs : this.spec.presenceMs, this.sessionMs)
  }

  /** What its holds need together: nested holds share what the outer one has. */
  get neededPermits(): number {
    return this.#served.reduce((most, { neededPermits }) => Math.max(most, neededPermits), 0)
  }

  /**
   * The first sending. A push that overtakes the answer is counted from here, also when the call
   * was repeated.
   */
  asked(now: number, isKeptAsAsked: boolean): void {
    this.acknowledgedAt = now
    this.#inLineAt = now
    // Where the store's session decides how long a place is kept, only an answer can tell.
    this.#placeUntil = isKeptAsAsked ? now + this.spec.presenceMs : now
  }

  /** The store has said that it keeps the place in line. */
  keptPlace(sentAt: number, { presenceMs, grantsAbove }: Waiting): void {
    this.acknowledgedAt = Math.max(this.acknowledgedAt, sentAt)
    this.#inLineAt = Math.max(this.#inLineAt, sentAt)
    this.#placeUntil = Math.max(this.#placeUntil, sentAt + presenceMs)
    this.#grantsAbove = Math.max(this.#grantsAbove, grantsAbove)
  }

  /** Whether a grant with this fence is of the present stay in line. */
  canBeGranted(fence: number): boolean {
    return fence > this.#grantsAbove
  }

  /**
   * Until when a hand-off can be trusted that only a push tells of. Promotion does not refresh a
   * waiter's deadline, and it came after the last answer that still said "waiting".
   */
  handedOffUntil(): number {
    const until = Math.min(this.#placeUntil, this.#inLineAt + (this.spec.maxHoldMs ?? Infinity))
    return until - driftMs(this.spec.presenceMs)
  }

  /**
   * The store has named the claims of this client that stand directly behind it, and keeps the next
   * fences for them.
   */
  followedBy(ids: readonly string[], grant: number): void {
    if (this.heirs || this.turn.isClosed) return
    this.heirs = { grant, ids: [...ids] }
    if (this.phase === 'held') this.turn.refill(grant + 1, ids.length)
  }

  granted(grant: number, validUntil: number, now: number): void {
    // Claims that followed an earlier grant need not follow this one.
    if (this.heirs?.grant !== grant) this.heirs = null
    this.phase = 'held'
    this.grant = grant
    this.validUntil = validUntil
    this.turn.begin(grant, this.turn.block + (this.heirs?.ids.length ?? 0), now)
  }

  /** A renewal never shortens. */
  renewed(validUntil: number): void {
    this.validUntil = Math.max(this.validUntil, validUntil)
  }

  /** Passes the grant on: from now on it serves this request, with the next fence. */
  serve(request: Request, now: number): void {
    // The store counts the first hold from the asking; the next ones begin now.
    const heldAt = this.turn.hasBegun ? now : Math.min(now, this.acknowledgedAt)
    this.lingerMs = request.spec.lingerMs
    this.lingersUntil = null
    this.isLeftToLapse = false
    // Readers that were all forgotten end here: from now on the lease is that of the new one.
    if (this.isForgotten) for (const forgotten of this.#served.splice(0)) forgotten.forget()
    this.#served.push(request)
    request.served(this, this.turn.takeFence(), heldAt)
  }

  /** The request has ended; the others go on. */
  drop(request: Request): void {
    this.#served = this.#served.filter((each) => each !== request)
    // It was the wish of a holder: the next one needs renewals, also before it is served.
    if (this.#served.length === 0) this.isLeftToLapse = false
  }

  end(): void {
    this.phase = 'over'
  }

  /** Ends it, and tells the holders. */
  lose(message: string, end: HoldEnd, cause?: unknown): void {
    if (this.phase !== 'held') return
    this.phase = 'over'
    const details = cause === undefined ? {} : { cause }
    const text = `The hold of '${this.resource}' was lost: ${message}`
    const reason = new HoldfastError('HOLD_LOST', text, { resource: this.resource, ...details })
    this.successors.onOver(this)
    for (const request of this.#served) request.lost(reason, end)
  }

  /**
   * Why it is lost when its validity has run out. Roughly, because only the store knows when a hold
   * began.
   */
  whyExpired(now: number): string {
    const { maxHoldMs } = this.spec
    const heldMs = now - (this.#served[0]?.heldAt ?? now)
    if (this.isLeftToLapse) return 'its time is over'
    const isOver = maxHoldMs !== null && heldMs >= maxHoldMs * 0.9
    return isOver ? `its maxHold of ${formatMs(maxHoldMs)} is over` : 'it was not renewed in time'
  }

  claimRequest(mode: ClaimMode, floor: number): ClaimRequest {
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
      block: this.turn.block,
      info: this.info,
    }
    if (adopts) return { ...request, adopts }
    const { maxWaiters } = this
    return maxWaiters === undefined || mode !== 'queue' ? request : { ...request, maxWaiters }
  }

  beat(): Beat {
    const { leaseMs, presenceMs, permits } = this.spec
    const isRenewed = this.phase !== 'held' || !this.isLeftToLapse
    const beat = { resource: this.resource, id: this.id, leaseMs: isRenewed ? leaseMs : 0, presenceMs }
    const wanted = this.phase === 'held' ? this.successors.fencesWanted(this) : 0
    const block = Math.min(wanted, this.turn.furtherFences)
    if (block > 0) return { ...beat, block }
    // What was given back is repeated: the answer to the first time may have been lost.
    return this.permits < permits ? { ...beat, permits: this.permits } : beat
  }
}
