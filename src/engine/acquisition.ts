import { deferred } from '../base/deferred.js'
import type { Cancel } from '../base/env.js'
import { HoldfastError, isRetryable, withOwnStack } from '../base/errors.js'
import { nothing } from '../base/nothing.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type { ClaimReply, Granted, Refused, Waiting } from '../contract/store.js'
import { HEALTHY_MS } from './calls.js'
import { type Claim, type ClaimListener, type ClaimSpec, driftMs, type Entry } from './claim.js'
import type { Cohort, Member } from './cohort.js'
import type { Engine } from './engine.js'
import { aborted, type Limits, watchLimits } from './limits.js'

/** An answer that arrived while this process stood still is read before the store is called silent. */
const LATE_ANSWER_MS = 100

/**
 * One caller's way to a hold: ask, or wait behind a neighbour who has asked; stand in line, ask again where the place was lost,
 * and give everything back when the caller gives up first.
 */
export class Acquisition implements ClaimListener, Member {
  arrival = 0
  readonly #engine: Engine
  readonly #limits: Limits
  readonly #claim: Claim
  #cohort: Cohort | null = null
  readonly #outcome = deferred<Entry | null>()
  #isSettled = false
  #letProcessEnd: Cancel = nothing
  /** The wait is over, and only the first answer is still waited for. */
  #timeout: HoldfastError | null = null
  #stopWaitingForAnswer: Cancel = nothing

  constructor(engine: Engine, spec: ClaimSpec, limits: Limits) {
    this.#engine = engine
    this.#limits = limits
    this.#claim = engine.newClaim(spec, this)
  }

  get claim(): Claim {
    return this.#claim
  }

  async run(): Promise<Entry | null> {
    const { resource } = this.#claim
    if (this.#limits.signal?.aborted) throw aborted(resource, this.#limits.signal)
    const unwatch = watchLimits(this.#engine.env, this.#limits, resource, (error) => {
      if (error.code === 'ACQUIRE_TIMEOUT') this.#endWait(error)
      else this.fail(error)
    })
    const endTry = this.#limits.waitMs === 0 ? this.#endTryInTime() : nothing
    this.#cohort = this.#engine.cohortOf(this.#claim, this.#limits)
    if (this.#cohort) this.#cohort.enter(this)
    else this.start()
    try {
      return await this.#outcome.promise
    } catch (error) {
      throw withOwnStack(error)
    } finally {
      unwatch()
      endTry()
      this.#stopWaitingForAnswer()
      this.#letProcessEnd()
    }
  }

  start(): void {
    this.#claim.phase = 'asking'
    // Registered before anything is sent: the push of a grant may overtake the reply.
    this.#engine.register(this.#claim)
    void this.#ask()
  }

  queue(): void {
    this.#claim.phase = 'queued'
    this.#limits.onWaiting?.()
  }

  takeOver(from: Claim): void {
    const { env, pulse } = this.#engine
    const claim = this.#claim
    const now = env.now()
    claim.takeOver(from)
    this.#engine.register(claim)
    const isGranted = claim.grant > 0
    // It is renewed first where it is about to end, as it is where there is no fence left for it.
    if (isGranted && !claim.isAboutToEnd(now) && !claim.needsFences)
      return claim.hold(claim.grant, claim.validUntil, now)
    this.#keepAlive()
    if (isGranted) pulse.hurry(claim)
  }

  join(claim: Claim, fence: number): void {
    // Its own was never sent.
    this.#claim.phase = 'ended'
    if (this.#settle()) this.#enter(claim, fence)
  }

  get canGoOn(): boolean {
    return this.#claim.canGoOn(this.#engine.env.now())
  }

  askForFences(): void {
    this.#engine.pulse.hurry(this.#claim)
  }

  /** A grant that is over on arrival is asked for again. One who does not wait must not do so for ever. */
  #endTryInTime(): Cancel {
    const { env, calls } = this.#engine
    const claim = this.#claim
    const withinMs = Math.min(calls.storeTimeoutMs, this.#limits.answerWithinMs ?? Infinity)
    const end = (): void => {
      if (claim.phase === 'asking') return this.#failSilent(withinMs)
      this.onUnavailable(new Error('its answers come later than the lease lasts; ask for a longer lease'))
    }
    return env.timer(withinMs, end, { keepAlive: true })
  }

  /** The wait is over. A store that does not answer must not be read as "taken". */
  #endWait(timeout: HoldfastError): void {
    const { env, calls } = this.#engine
    const claim = this.#claim
    if (claim.phase === 'asking') {
      this.#timeout = timeout
      const silentMs = (): number => env.now() - calls.silentFrom(claim.acknowledgedAt)
      const end = (): void => {
        // It answers what was sent before this request: it is busy, not down.
        if (silentMs() < HEALTHY_MS - 1) this.fail(timeout)
        else this.#failSilent(silentMs())
      }
      const leftMs = Math.max(LATE_ANSWER_MS, HEALTHY_MS - silentMs())
      this.#stopWaitingForAnswer = env.timer(leftMs, end, { keepAlive: true })
    } else void this.#endOfWait(timeout).then((error) => this.fail(error))
  }

  /** Judged by the claim that stands in the store's line, this one's or that of the neighbour whom it waits behind. */
  async #endOfWait(timeout: HoldfastError): Promise<HoldfastError> {
    const { env, calls, states } = this.#engine
    const claim = (this.#claim.phase === 'queued' && this.#cohort?.frontClaim) || this.#claim
    const now = env.now()
    if (claim.silentSince !== null && now - claim.silentSince >= HEALTHY_MS) {
      const since = claim.silentSince
      return calls.endedBy(calls.unavailable(claim.silentBecause, { since }), claim.resource)
    }
    const isAnswered = claim.phase !== 'asking' && now - claim.acknowledgedAt < HEALTHY_MS
    return isAnswered ? timeout : states.endOfWait(claim.resource, timeout)
  }

  /** The store has not answered this request for so long. */
  #failSilent(silentMs: number): void {
    const { env, calls } = this.#engine
    const { resource, silentBecause } = this.#claim
    const since = env.now() - silentMs
    const failure = calls.unavailable(silentBecause ?? calls.silent(silentMs), { since })
    this.fail(calls.endedBy(failure, resource))
  }

  /** The caller gives up, or is sent away. What may stand in line for it is taken back. */
  fail(error: HoldfastError): void {
    if (!this.#settle()) return
    const claim = this.#claim
    const { phase } = claim
    claim.phase = 'ended'
    this.#outcome.reject(error)
    if (phase === 'queued') return this.#cohort?.leave(this)
    this.#engine.forget(claim)
    // The place in line is the cohort's: a neighbour with more patience keeps it. Before the first answer there is none.
    if (phase === 'waiting' && this.#cohort?.isNextInOrder && this.#cohort.passOn(claim)) return
    void this.#engine.withdraw(claim.resource, claim.id)
    this.#cohort?.over(claim)
  }

  /** What the store has said to one is true for all who ask for the same. */
  #failAll(error: HoldfastError): void {
    this.#cohort?.failAll(error)
    this.fail(error)
  }

  onHeld(): void {
    if (this.#settle()) this.#enter(this.#claim, this.#claim.fence)
    this.#cohort?.letIn(this.#claim)
  }

  onRenewed(): void {
    this.#cohort?.letIn(this.#claim)
  }

  fencesWanted(): number {
    return this.#cohort?.fencesFor(this.#claim) ?? 0
  }

  #enter(claim: Claim, fence: number): void {
    const entry = claim.enter(claim.permits, fence)
    this.#engine.noteFence(entry)
    this.#outcome.resolve(entry)
  }

  onGone(): void {
    const claim = this.#claim
    this.#engine.forget(claim)
    claim.id = this.#engine.newId()
    claim.phase = 'asking'
    claim.dueAt = Infinity
    claim.silentSince = null
    // What is still under way is about the old id.
    claim.isBeating = false
    claim.isHurried = false
    this.#engine.register(claim)
    void this.#ask()
  }

  /** A caller that never releases what it has lost must not fill the memory. */
  onLost(): void {
    this.#engine.forget(this.#claim)
    this.#cohort?.over(this.#claim)
  }

  passOn(): boolean {
    if (!this.canGoOn) return false
    if (!this.#cohort) return this.#engine.passToHeir(this.#claim)
    return this.#cohort.isNextInOrder && this.#cohort.passOn(this.#claim)
  }

  onReleased(): void {
    this.#cohort?.over(this.#claim)
  }

  onUnavailable(cause: unknown): void {
    const { resource, silentSince } = this.#claim
    const since = silentSince === null ? {} : { since: silentSince }
    this.#failAll(this.#engine.calls.unavailable(cause, { resource, ...since }))
  }

  /** Asks until there is an answer. Never rejects. A newer ask, after the place was lost, ends an older one. */
  async #ask(): Promise<void> {
    const { env, calls, capabilities } = this.#engine
    const claim = this.#claim
    const id = claim.id
    let sentAt = env.now()
    const deadline = sentAt + calls.storeTimeoutMs
    const baton = this.#cohort && this.#engine.newBaton(this.#cohort.fencesFor(claim))
    claim.asked(sentAt, { isKeptAsAsked: capabilities.perHoldLease, baton })
    for (let attempt = 1; claim.phase === 'asking' && claim.id === id; attempt++) {
      try {
        const reply = await calls.within(calls.oneCallUntil(deadline), () => this.#send(id))
        if (claim.phase === 'asking' && claim.id === id) this.#onReply(reply, sentAt)
        return
      } catch (error) {
        if (claim.phase !== 'asking' || claim.id !== id) return
        claim.silentSince ??= sentAt
        claim.silentBecause = error
        const pauseMs = calls.retryInMs(attempt)
        if (!isRetryable(error) || env.now() + pauseMs >= deadline) return this.onUnavailable(error)
        await calls.pause(pauseMs)
        sentAt = env.now()
      }
    }
  }

  /** A reply that finds its caller gone, however late, gives back what it brings. */
  async #send(id: string): Promise<ClaimReply> {
    const claim = this.#claim
    const reply = await this.#engine.connection.claim(
      claim.request(this.#limits.waitMs > 0 ? 'queue' : 'try', this.#engine.floorOf(claim.resource)),
    )
    // Also where the caller has gone, a neighbour may stand for it.
    const isAbandoned = !this.#engine.stands(id)
    if (isAbandoned && reply.status !== 'refused') void this.#engine.withdraw(claim.resource, id)
    return reply
  }

  #onReply(reply: ClaimReply, sentAt: number): void {
    if (reply.status === 'refused') return this.#onRefused(reply)
    this.#claim.phase = 'waiting'
    this.#claim.silentSince = null
    if (reply.status === 'granted') this.#onGranted(reply, sentAt)
    else this.#onWaiting(reply, sentAt)
  }

  #onGranted({ fence, leaseMs, isWanted, waitedMs = 0 }: Granted, sentAt: number): void {
    const claim = this.#claim
    const leftAt = sentAt + waitedMs
    claim.baton?.answered(isWanted, sentAt)
    claim.acknowledgedAt = Math.max(claim.acknowledgedAt, leftAt)
    this.#engine.pulse.held(claim, fence, leftAt + leaseMs - driftMs(leaseMs))
  }

  #onWaiting(reply: Waiting, sentAt: number): void {
    this.#claim.keptPlace(sentAt, reply)
    this.#engine.pulse.plan(this.#claim, reply)
    // After the plan: a neighbour may take the place over as it is.
    if (this.#timeout) return this.fail(this.#timeout)
    this.#keepAlive()
    this.#limits.onWaiting?.()
  }

  /** Somebody waits for this: the process must not end for want of other work. Where the wait has an end, its timer sees to that. */
  #keepAlive(): void {
    this.#letProcessEnd()
    if (this.#limits.waitMs < Infinity) return
    this.#letProcessEnd = this.#engine.keepAlive.begin()
  }

  #onRefused(reply: Refused): void {
    const { resource } = this.#claim
    if (reply.reason === 'capacity') {
      this.#failAll(capacityMismatch(this.#claim.spec, reply.capacity))
    } else if (reply.reason === 'gone') {
      const message = `The passed hold of '${resource}' is no longer held: it was released, lost or adopted already`
      this.fail(new HoldfastError('NOT_HELD', message, { resource }))
    } else if (this.#settle()) {
      this.#claim.phase = 'ended'
      this.#engine.forget(this.#claim)
      this.#outcome.resolve(null)
    }
  }

  #settle(): boolean {
    const isFirst = !this.#isSettled
    this.#isSettled = true
    return isFirst
  }
}

function capacityMismatch(spec: ClaimSpec, actual: number | undefined): HoldfastError {
  const { resource, permits, capacity } = spec
  const kind = (of: number | undefined): string => (of === EXCLUSIVE ? 'a lock' : `a semaphore of ${of}`)
  const message =
    actual !== undefined && capacity !== EXCLUSIVE && permits > actual
      ? `'${resource}' was resized to ${actual}, so ${permits} permits can never be had; ask for fewer, or resize() it`
      : `'${resource}' is in use as ${kind(actual)}, not as ${kind(capacity)}; use the same everywhere, or change a semaphore with resize()`
  return new HoldfastError('CAPACITY_MISMATCH', message, { resource })
}
