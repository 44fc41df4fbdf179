import { backoffMs } from '../base/backoff.js'
import { type Cancel, detached, type Env } from '../base/env.js'
import { HoldfastError, isRetryable } from '../base/errors.js'
import { nothing } from '../base/nothing.js'

/** How calls to a store are limited in time. */
export interface CallLimits {
  readonly storeName: string
  /** How long the store may stay silent before a caller is told that it is unavailable. */
  readonly storeTimeoutMs: number
  /** Why the store is silent, where that is known. */
  readonly trouble: () => string | null
}

const FIRST_RETRY_MS = 20
const LONGEST_RETRY_MS = 500

/**
 * The last answer. A store that answers what was sent before a call is not silent, but busy: the call stands in line, in the
 * store or before it.
 */
export class Heard {
  #sentAt = Infinity
  #at = 0

  note(sentAt: number, now: number): void {
    this.#sentAt = sentAt
    this.#at = now
  }

  /** Since when the store is silent for a call that was sent then. */
  silentFrom(sentAt: number): number {
    return this.#sentAt <= sentAt ? Math.max(sentAt, this.#at) : sentAt
  }
}

/** Calls to a store with a deadline for each, and repetition of what can be repeated. */
export class Calls {
  readonly #env: Env
  readonly #limits: CallLimits
  readonly #heard = new Heard()

  constructor(env: Env, limits: CallLimits) {
    this.#env = env
    this.#limits = limits
  }

  get storeTimeoutMs(): number {
    return this.#limits.storeTimeoutMs
  }

  /** A third of the store's time-out: so a request whose reply got lost can be repeated before the caller is told. */
  get oneCallMs(): number {
    return this.#limits.storeTimeoutMs / 3
  }

  /**
   * The call's result, or STORE_UNAVAILABLE when the store has been silent for `timeoutMs`. What the call does later is nobody's
   * business any more. `heard` are the answers to those that stand in one line with this call.
   */
  within<T>(timeoutMs: number, call: () => Promise<T>, heard = this.#heard): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let cancel: Cancel = nothing
      const fail = (error: unknown): void => {
        cancel()
        reject(error)
      }
      const sentAt = this.#env.now()
      const succeed = (value: T): void => {
        cancel()
        heard.note(sentAt, this.#env.now())
        resolve(value)
      }
      const waitFor = (ms: number): void => {
        cancel = this.#env.timer(ms, onTime, { keepAlive: true })
      }
      const onTime = (): void => {
        const leftMs = heard.silentFrom(sentAt) + timeoutMs - this.#env.now()
        if (leftMs > 0) waitFor(leftMs)
        else reject(this.#silent(timeoutMs))
      }
      const start = (): void => {
        waitFor(timeoutMs)
        call().then(succeed, fail)
      }
      try {
        // A store may open sockets and watches in a call: they must not carry the async context of this one caller.
        detached(start)
      } catch (error) {
        fail(error)
      }
    })
  }

  /** One call that must not be repeated, or need not be. */
  async once<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await this.within(this.storeTimeoutMs, call)
    } catch (error) {
      throw this.unavailable(error)
    }
  }

  /** Repeats a call that may safely be repeated, until `deadline`. `attempt` is 1 at first. */
  async repeated<T>(deadline: number, call: (attempt: number) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        const leftMs = Math.max(1, deadline - this.#env.now())
        return await this.within(Math.min(this.oneCallMs, leftMs), () => call(attempt))
      } catch (error) {
        const pauseMs = this.retryInMs(attempt)
        if (!isRetryable(error) || this.#env.now() + pauseMs >= deadline) throw this.unavailable(error)
        await this.pause(pauseMs)
      }
    }
  }

  retryInMs(attempt: number): number {
    return backoffMs(attempt, this.#env.random(), FIRST_RETRY_MS, LONGEST_RETRY_MS)
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#env.timer(ms, resolve, { keepAlive: true })
    })
  }

  /** The error for the caller: a store's own errors pass as they are, others are wrapped. */
  unavailable(cause: unknown, resource?: string): HoldfastError {
    if (cause instanceof HoldfastError) return cause
    const store = this.#limits.storeName
    const reason = cause instanceof Error ? cause.message : String(cause)
    const message = `The ${store} store failed: ${reason}`
    return new HoldfastError('STORE_UNAVAILABLE', message, {
      store,
      cause,
      ...(resource === undefined ? {} : { resource }),
    })
  }

  #silent(timeoutMs: number): HoldfastError {
    const store = this.#limits.storeName
    const trouble = this.#limits.trouble()
    const why = trouble === null ? '' : ` (${trouble})`
    const message = `The ${store} store did not answer within ${Math.round(timeoutMs)} ms${why}; check that it is up and reachable, or raise storeTimeout`
    return new HoldfastError('STORE_UNAVAILABLE', message, { store, retryable: true })
  }
}
