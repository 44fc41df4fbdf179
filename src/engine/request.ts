import type { Cancel } from '../base/env.js'
import { HoldfastError, withOwnStack } from '../base/errors.js'
import type { HoldEnd } from '../base/events.js'
import { nothing } from '../base/nothing.js'
import { HEALTHY_MS } from '../calls/calls.js'
import { type Limits, watchLimits } from '../calls/limits.js'
import type { Engine } from './engine.js'
import type { Lease } from './lease.js'
import type { Observation } from './observation.js'
import type { RequestSpec } from './spec.js'
import type { RequestLine } from './successors.js'

/**
 * An answer that arrived while this process stood still is read before the store is called silent.
 */
const LATE_ANSWER_MS = 100

/** One hold on a request: its own, or that of a flow or an owner that has entered again. */
export interface Entry {
  readonly request: Request
  permits: number
  /** The callback of a nested run is over, or there is none: the next nested run may begin. */
  endRun: () => void
  /** A nested hold was released: the frame around it need not wait for it any more. */
  leaveFrame: () => void
  /** Set for a hold that its holder has to release: tells whether anybody still can. */
  trace?: Trace | null
}

/** How a forgotten hold is noticed. From the first look on, it does not keep the hold alive. */
export interface Trace {
  /** Looks whether the hold was garbage-collected without a release. */
  isForgotten(): boolean
  /** Where it was acquired; null unless NODE_DEBUG asks for it. */
  readonly stack: string | null
  /** What the release would have called. */
  readonly onRelease: () => void
}

/**
 * - `waiting`: for a lease to serve it
 * - `held`: a lease serves it
 * - `lost`: was held, and can no longer be trusted
 * - `over`: released, or given up
 */
export type RequestPhase = 'waiting' | 'held' | 'lost' | 'over'

/** One caller: what it asked for, how long it waits, and what became of it. */
export class Request {
  phase: RequestPhase = 'waiting'
  /** Its number among the requests of this client that wait behind each other. */
  arrival = 0
  /** Its neighbours in the queue. */
  before: Request | null = null
  after: Request | null = null
  /** The lease that serves it; while it waits, the one that stands in line for it alone. */
  lease: Lease | null = null
  fence = 0
  heldAt = 0
  lostBecause: HoldfastError | null = null
  /** Publishes what becomes of it; null: nobody subscribes. */
  observation: Observation | null = null
  /** Where it waits. Set before anything is sent. */
  line!: RequestLine
  /** Mostly one: see `Lease`. */
  #entries: Entry[] = []
  #lossListeners: ((reason: HoldfastError) => void)[] | null = null
  #endListeners: (() => void)[] | null = null
  #settle: { resolve(entry: Entry | null): void; reject(error: HoldfastError): void } | null = null
  #failure: HoldfastError | null = null
  #isWaiting = false
  /** The wait is over, and only the first answer is still waited for. */
  #timeout: HoldfastError | null = null
  #stopWaitingForAnswer: Cancel = nothing

  constructor(
    readonly engine: Engine,
    readonly spec: RequestSpec,
    readonly info: string,
    readonly limits: Limits,
  ) {}

  get resource(): string {
    return this.spec.resource
  }

  /** At once where the store has answered already. null: not free, and the caller does not wait. */
  outcome(): Entry | null | Promise<Entry | null> {
    if (this.phase === 'waiting') return this.#wait()
    // It may have been told to wait, and then been served within the same call.
    this.#letProcessEnd()
    if (this.#failure) throw withOwnStack(this.#failure)
    return this.#entries[0] ?? null
  }

  async #wait(): Promise<Entry | null> {
    const { env } = this.engine
    const unwatch = watchLimits(env, this.limits, this.resource, (error) => {
      if (error.code === 'ACQUIRE_TIMEOUT') this.#endWait(error)
      else this.fail(error)
    })
    const endTry = this.limits.waitMs === 0 ? this.#endTryInTime() : nothing
    try {
      return await new Promise<Entry | null>((resolve, reject) => {
        this.#settle = { resolve, reject }
      })
    } catch (error) {
      throw withOwnStack(error)
    } finally {
      unwatch()
      endTry()
      this.#stopWaitingForAnswer()
      this.#letProcessEnd()
    }
  }

  #letProcessEnd(): void {
    if (this.#isWaiting && this.limits.waitMs === Infinity) this.engine.env.letProcessEnd()
  }

  /** The store, or a request before it, makes it wait. */
  onWaiting(): void {
    this.observation?.queued()
    if (this.#timeout) return this.fail(this.#timeout)
    if (this.#isWaiting) return
    this.#isWaiting = true
    // Where the wait has an end, its timer keeps the process alive.
    if (this.limits.waitMs === Infinity) this.engine.env.keepProcess()
    this.limits.onWaiting?.()
  }

  served(lease: Lease, fence: number, heldAt: number): void {
    this.phase = 'held'
    this.lease = lease
    this.fence = fence
    this.heldAt = heldAt
    if (this.observation) this.observation.heldAt = this.engine.env.now()
    this.engine.floors.note(this.resource, fence)
    this.line.onServed(this)
    const entry = this.enter(lease.permits)
    this.#settle?.resolve(entry)
  }

  /** The lock is not free, and the caller does not wait. */
  refused(): void {
    this.phase = 'over'
    this.#settle?.resolve(null)
  }

  /** The caller gives up, or is sent away. */
  fail(error: HoldfastError): void {
    if (this.phase !== 'waiting') return
    this.failed(error)
    this.line.onLeft(this)
  }

  /** As `fail`, for a request that has left its line already. */
  failed(error: HoldfastError): void {
    this.phase = 'over'
    this.#failure = error
    this.#settle?.reject(error)
  }

  /**
   * The store must answer, and a busy one may take longer. A grant that is over on arrival is asked
   * for again: a caller that does not wait must not do so for ever.
   */
  #endTryInTime(): Cancel {
    const { env, calls } = this.engine
    const { answerWithinMs = Infinity } = this.limits
    const patienceMs = Math.min(calls.storeTimeoutMs, answerWithinMs)
    const sentAt = env.now()
    let stop: Cancel
    const look = (): void => {
      const { lease } = this.line
      if (lease && lease.phase !== 'asking') return this.#failLate(lease)
      const now = env.now()
      const leftMs = Math.min(calls.silentFrom(sentAt) + patienceMs, sentAt + answerWithinMs) - now
      if (leftMs >= 1) stop = env.timer(leftMs, look, { keepAlive: true })
      else if (now - calls.silentFrom(sentAt) > patienceMs - 1) this.#failSilent(patienceMs)
      else this.#giveUpTry()
    }
    stop = env.timer(patienceMs, look, { keepAlive: true })
    return () => stop()
  }

  #failLate(lease: Lease): void {
    const cause = new Error('its answers come later than the lease lasts; ask for a longer lease')
    lease.successors.onFailure(lease, this.engine.calls.unavailable(cause, { resource: this.resource }))
  }

  /** The store is busy: for this caller the lock is not free. */
  #giveUpTry(): void {
    this.refused()
    this.line.onLeft(this)
  }

  /** The wait is over. A store that does not answer must not be read as "taken". */
  #endWait(timeout: HoldfastError): void {
    const { env, calls } = this.engine
    const { lease } = this.line
    if (lease?.phase !== 'asking' || !this.line.isFirst(this))
      return void this.#endOfWait(timeout, lease).then((error) => this.fail(error))
    this.#timeout = timeout
    const silentMs = (): number => env.now() - calls.silentFrom(lease.acknowledgedAt)
    const end = (): void => {
      // It answers what was sent before this request: it is busy, not down.
      if (silentMs() < HEALTHY_MS - 1) this.fail(timeout)
      else this.#failSilent(silentMs())
    }
    const leftMs = Math.max(LATE_ANSWER_MS, HEALTHY_MS - silentMs())
    this.#stopWaitingForAnswer = env.timer(leftMs, end, { keepAlive: true })
  }

  async #endOfWait(timeout: HoldfastError, lease: Lease | null): Promise<HoldfastError> {
    const { env, calls, states } = this.engine
    if (!lease) return states.endOfWait(this.resource, timeout)
    const { silentSince: since, silentBecause } = lease.heartbeat
    const now = env.now()
    if (since !== null && now - since >= HEALTHY_MS)
      return calls.endedBy(calls.unavailable(silentBecause, { since }), this.resource)
    const isAnswered = lease.phase !== 'asking' && now - lease.acknowledgedAt < HEALTHY_MS
    return isAnswered ? timeout : states.endOfWait(this.resource, timeout)
  }

  /** The store has not answered this request for so long. */
  #failSilent(silentMs: number): void {
    const { env, calls } = this.engine
    const since = env.now() - silentMs
    const cause = this.line.lease?.heartbeat.silentBecause ?? calls.silent(silentMs)
    this.fail(calls.endedBy(calls.unavailable(cause, { since }), this.resource))
  }

  isValid(now: number): boolean {
    return this.phase === 'held' && this.lease?.isValid(now) === true
  }

  /**
   * One more hold of the same owner stands on it from this moment: counted before anybody awaits,
   * or the last other one could release it meanwhile.
   */
  enter(permits: number): Entry {
    if (permits > (this.lease?.permits ?? 0)) throw upgradeRefused(this.resource)
    const entry: Entry = { request: this, permits, endRun: nothing, leaveFrame: nothing }
    if (this.lease) this.lease.isForgotten = false
    this.#entries.push(entry)
    return entry
  }

  leave(entry: Entry): void {
    this.#entries = this.#entries.filter((each) => each !== entry)
  }

  get isEntered(): boolean {
    return this.#entries.length > 0
  }

  /** Whether that hold still stands on it. */
  has(entry: Entry): boolean {
    return this.#entries.includes(entry)
  }

  /** Whether it is held by another hold than those. */
  isHeldBeside(own: ReadonlySet<Entry>): boolean {
    return this.phase === 'held' && this.#entries.some((entry) => !own.has(entry))
  }

  get neededPermits(): number {
    return this.#entries.reduce((most, { permits }) => Math.max(most, permits), 0)
  }

  /** Removes the holds that nobody can release any more, and gives those that were found now. */
  dropForgotten(): Entry[] {
    const forgotten = this.#entries.filter(({ trace }) => trace?.isForgotten() === true)
    if (forgotten.length > 0) this.#entries = this.#entries.filter((entry) => !forgotten.includes(entry))
    return forgotten
  }

  lost(reason: HoldfastError, end: HoldEnd): void {
    if (this.phase !== 'held') return
    this.phase = 'lost'
    this.lostBecause = reason
    this.observation?.over(end, reason)
    const listeners = this.#lossListeners ?? []
    this.#lossListeners = null
    for (const tell of listeners) tell(reason)
    this.#tellEnd()
  }

  /** Nobody can release it any more. */
  forget(): void {
    this.observation?.over('forgotten')
    this.end()
  }

  /** Given back: it is over, and that is no loss. */
  end(): void {
    if (this.phase === 'held') this.phase = 'over'
    this.#lossListeners = null
    this.#tellEnd()
  }

  /** The returned function ends the interest. */
  onLoss(tell: (reason: HoldfastError) => void): () => void {
    if (this.lostBecause) tell(this.lostBecause)
    else this.#lossListeners = [...(this.#lossListeners ?? []), tell]
    return () => {
      this.#lossListeners = this.#lossListeners?.filter((each) => each !== tell) ?? null
    }
  }

  /** Lost or given back; at once if it is so already. The returned function ends the interest. */
  onEnd(tell: () => void): () => void {
    const listener = (): void => tell()
    if (this.phase === 'lost' || this.phase === 'over') tell()
    else this.#endListeners = [...(this.#endListeners ?? []), listener]
    return () => {
      this.#endListeners = this.#endListeners?.filter((each) => each !== listener) ?? null
    }
  }

  #tellEnd(): void {
    const listeners = this.#endListeners ?? []
    this.#endListeners = null
    for (const tell of listeners) tell()
  }
}

export function upgradeRefused(resource: string): HoldfastError {
  const message = `'${resource}' is held for reading here and cannot be turned into a hold for writing; release it first, or ask for writing in the first place`
  return new HoldfastError('UPGRADE_REFUSED', message, { resource })
}
