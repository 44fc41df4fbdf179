import { aborted, listenToAbort } from '../../base/abort.js'
import { deferred } from '../../base/deferred.js'
import type { Cancel, Env } from '../../base/env.js'
import { type HoldfastError, withOwnStack } from '../../base/errors.js'
import { nothing } from '../../base/nothing.js'
import { ANSWER_MS, noAnswer, noConnection } from '../limits.js'
import type { TransactionLockRequest } from './options.js'

/**
 * An outermost run until its work begins. The caller is told at once when the signal aborts, or
 * when no connection is lent or no answer comes in time. A transaction that begins after that does
 * no work.
 */
export class TransactionStart {
  readonly deadline: number
  readonly #store: string
  readonly #env: Env
  readonly #givenUp = deferred<never>()
  #failure: HoldfastError | undefined
  #isLocked = false
  #cancelTimer: Cancel = nothing
  #unlisten: () => void = nothing

  constructor(request: TransactionLockRequest, store: string, env: Env) {
    this.deadline = env.now() + request.waitMs
    this.#store = store
    this.#env = env
    const { name, signal } = request
    if (signal) this.#unlisten = listenToAbort(signal, () => this.#giveUp(aborted(name, signal)))
  }

  /** Whether the work has begun: from then on errors belong to the caller's work. */
  get isLocked(): boolean {
    return this.#isLocked
  }

  /** Limits the time until `connected`. */
  connecting(): void {
    if (this.deadline === Infinity) return
    const withinMs = Math.max(this.deadline - this.#env.now(), ANSWER_MS)
    this.#giveUpAfter(withinMs, () => noConnection(this.#store, withinMs))
  }

  /** Limits the time until `locked`: the server counts the wait itself, unless it is silent. */
  connected(): void {
    this.#cancelTimer()
    if (this.#failure) throw this.#failure
    if (this.deadline === Infinity) return
    const leftMs = Math.max(this.deadline - this.#env.now(), 0)
    this.#giveUpAfter(leftMs + ANSWER_MS, () => noAnswer(this.#store))
  }

  locked(): void {
    this.#cancelTimer()
    if (this.#failure) throw this.#failure
    this.#isLocked = true
    this.#unlisten()
  }

  /** The outcome of the run, or the reason why its caller no longer waits for it. */
  async outcome<T>(running: Promise<T>): Promise<T> {
    try {
      return await Promise.race([running, this.#givenUp.promise])
    } catch (error) {
      throw error === this.#failure ? withOwnStack(error) : error
    } finally {
      this.#cancelTimer()
      this.#unlisten()
    }
  }

  #giveUpAfter(ms: number, failure: () => HoldfastError): void {
    this.#cancelTimer()
    this.#cancelTimer = this.#env.timer(ms, () => this.#giveUp(failure()), { keepAlive: true })
  }

  #giveUp(failure: HoldfastError): void {
    this.#failure ??= failure
    this.#givenUp.reject(this.#failure)
  }
}
