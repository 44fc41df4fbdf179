import { aborted, listenToAbort } from '../../base/abort.js'
import type { Env } from '../../base/env.js'
import type { HoldfastError } from '../../base/errors.js'
import { nothing } from '../../base/nothing.js'
import { trustedUntil } from '../../contract/validity.js'
import { outOfReach } from '../../stores/redis/failures.js'
import { ANSWER_MS } from '../limits.js'
import { answered, explainPeer, retryMs, untilAnswered } from './answers.js'
import type { PeerClaim, PeerGrant, TakeAnswer } from './claim.js'
import type { PeerRequest } from './options.js'
import { Pause } from './pause.js'

/** A failure that passes is retried for this time before a waiter without a limit is told. */
const RETRY_MS = 10_000

/** The wait of one caller for one lock. */
export class Acquisition {
  readonly #claim: PeerClaim
  readonly #name: string
  readonly #request: PeerRequest
  readonly #env: Env
  readonly #pause: Pause
  readonly #deadline: number
  #isListening = false
  #sentAt = 0
  /** An attempt whose answer is not known: it may have taken the lock. */
  #unanswered: Promise<unknown> | null = null
  #failure: { readonly error: HoldfastError; readonly since: number; count: number } | null = null

  constructor(claim: PeerClaim, name: string, request: PeerRequest, env: Env) {
    this.#claim = claim
    this.#name = name
    this.#request = request
    this.#env = env
    this.#pause = new Pause(env)
    this.#deadline = env.now() + request.waitMs
  }

  /** Resolves with null if the lock was held by others until the end of the wait. */
  async grant(): Promise<PeerGrant | null> {
    const { signal } = this.#request
    this.#throwIfAborted()
    const unlisten = signal ? listenToAbort(signal, () => this.#pause.wake()) : nothing
    let grant: PeerGrant | null = null
    try {
      grant = await this.#wait()
      return grant
    } finally {
      unlisten()
      if (this.#isListening) this.#claim.unlisten?.(this.#pause)
      if (!grant) await this.#leave()
    }
  }

  async #wait(): Promise<PeerGrant | null> {
    for (;;) {
      const answer = await this.#attempt()
      if (answer?.isGranted) return this.#granted(answer.fence)
      this.#throwIfAborted()
      const leftMs = this.#deadline - this.#env.now()
      if (this.#failure && this.#isHopeless(leftMs)) throw this.#failure.error
      if (leftMs <= 0) return null
      if (answer && (await this.#beginListening())) continue
      const pauseMs = answer?.retryMs ?? retryMs(this.#env, this.#failure?.count ?? 1)
      await this.#pause.last(Math.min(pauseMs, leftMs))
      this.#throwIfAborted()
    }
  }

  #isTrusted(): boolean {
    return this.#env.now() < trustedUntil(this.#sentAt, this.#request.leaseMs)
  }

  #granted(fence: number | null): PeerGrant {
    return { claim: this.#claim, fence, leaseMs: this.#request.leaseMs, sentAt: this.#sentAt }
  }

  /** Resolves with null after a failure. */
  async #attempt(): Promise<TakeAnswer | null> {
    const { signal } = this.#request
    this.#sentAt = this.#env.now()
    const limitMs = Math.min(Math.max(this.#deadline - this.#sentAt, ANSWER_MS), RETRY_MS)
    const call = this.#claim.take(this.#request)
    this.#unanswered = call
    try {
      const answer = await answered(this.#env, limitMs, call, signal)
      if (answer.isGranted && !this.#isTrusted()) throw this.#tooLate()
      this.#unanswered = null
      this.#failure = null
      return answer
    } catch (error) {
      this.#throwIfAborted()
      this.#noteFailure(explainPeer(error))
      return null
    }
  }

  #tooLate(): HoldfastError {
    return outOfReach(`its answer took longer than the lease of ${this.#request.leaseMs} ms`)
  }

  #noteFailure(error: HoldfastError): void {
    const { since = this.#sentAt, count = 0 } = this.#failure ?? {}
    this.#failure = { error, since, count: count + 1 }
  }

  #isHopeless(leftMs: number): boolean {
    const { error, since } = this.#failure ?? {}
    const isPatient = this.#request.waitMs < Infinity || this.#env.now() - (since ?? 0) < RETRY_MS
    return !error?.retryable || leftMs <= 0 || !isPatient
  }

  /** Whether the next attempt should be made at once, because it listens from now on. */
  async #beginListening(): Promise<boolean> {
    if (this.#isListening || !this.#claim.listen) return false
    this.#isListening = true
    try {
      const limitMs = Math.min(this.#deadline - this.#env.now(), ANSWER_MS)
      await answered(this.#env, limitMs, this.#claim.listen(this.#pause), this.#request.signal)
      // The next attempt, which can miss nothing any more, makes up for it.
      this.#pause.takeWakeUp()
      return true
    } catch {
      // The lock is polled until the subscription succeeds.
      this.#throwIfAborted()
      return false
    }
  }

  /**
   * An attempt may have been granted without our hearing of it. The lock must not stay until the
   * end of its lease, so it is given back, again when the attempt is answered late.
   */
  async #leave(): Promise<void> {
    const unanswered = this.#unanswered
    if (!unanswered && !this.#claim.hasPlace) return
    const deadline = this.#sentAt + this.#request.leaseMs
    const leave = (): Promise<unknown> =>
      untilAnswered(this.#env, deadline, ANSWER_MS, () => this.#claim.leave()).catch(nothing)
    const leaving = leave()
    if (unanswered) void unanswered.then(leave, nothing)
    else await answered(this.#env, ANSWER_MS, leaving).catch(nothing)
  }

  #throwIfAborted(): void {
    const { signal } = this.#request
    if (signal?.aborted) throw aborted(this.#name, signal)
  }
}
