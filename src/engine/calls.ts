import { backoffMs } from '../base/backoff.js'
import { formatMs } from '../base/duration.js'
import { type Cancel, detached, type Env } from '../base/env.js'
import { HoldfastError, isRetryable } from '../base/errors.js'
import { nothing } from '../base/nothing.js'

export interface CallLimits {
  readonly storeName: string
  /** How long the store may stay silent before a call fails with STORE_UNAVAILABLE. */
  readonly storeTimeoutMs: number
  /** Why the store is silent, if known. */
  readonly trouble: () => string | null
}

/** A healthy store answers a small request in this time, even a first, distant or busy one. */
export const HEALTHY_MS = 2000

const FIRST_RETRY_MS = 20
const LONGEST_RETRY_MS = 500

/** The last answer. A store that answers calls sent before this one is busy, not silent. */
export class Heard {
  #sentAt = Infinity
  #at = 0

  note(sentAt: number, now: number): void {
    this.#sentAt = sentAt
    this.#at = now
  }

  /** Since when the store has been silent for a call sent at `sentAt`. */
  silentFrom(sentAt: number): number {
    return this.#sentAt <= sentAt ? Math.max(sentAt, this.#at) : sentAt
  }
}

/** The store sent neither an answer nor an error. */
class Silence extends HoldfastError {}

/** Calls to a store, each with a deadline, and retries of those that are safe to repeat. */
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

  /** A third of the timeout, so a request whose reply was lost can be retried in time. */
  get oneCallMs(): number {
    return this.#limits.storeTimeoutMs / 3
  }

  /**
   * The result, or STORE_UNAVAILABLE when the store was silent for `timeoutMs`; a later result is
   * ignored. `heard`: the last answer on the same queue of calls.
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
        else reject(this.silent(timeoutMs))
      }
      const start = (): void => {
        waitFor(timeoutMs)
        call().then(succeed, fail)
      }
      try {
        // Sockets and watches that the store opens must not carry the caller's async context.
        detached(start)
      } catch (error) {
        fail(error)
      }
    })
  }

  /** Since when the store has been silent for a call sent at `sentAt`. */
  silentFrom(sentAt: number): number {
    return this.#heard.silentFrom(sentAt)
  }

  /** Makes one call, without a retry. */
  async once<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await this.within(this.storeTimeoutMs, call)
    } catch (error) {
      throw this.unavailable(error)
    }
  }

  /** Retries a call that is safe to repeat, until `deadline`. `attempt` starts at 1. */
  async repeated<T>(
    deadline: number,
    call: (attempt: number) => Promise<T>,
    heard = this.#heard,
  ): Promise<T> {
    const startedAt = this.#env.now()
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.within(this.oneCallUntil(deadline), () => call(attempt), heard)
      } catch (error) {
        const pauseMs = this.retryInMs(attempt)
        if (!isRetryable(error) || this.#env.now() + pauseMs >= deadline)
          throw this.unavailable(error, { since: startedAt })
        await this.pause(pauseMs)
      }
    }
  }

  /** How long one attempt may take: the last one ends at the deadline. */
  oneCallUntil(deadline: number): number {
    return Math.min(this.oneCallMs, Math.max(1, deadline - this.#env.now()))
  }

  retryInMs(attempt: number): number {
    return backoffMs(attempt, this.#env.random(), FIRST_RETRY_MS, LONGEST_RETRY_MS)
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#env.timer(ms, resolve, { keepAlive: true })
    })
  }

  /** The error for the caller. Silence is reported with the time of all attempts, from `since`. */
  unavailable(
    cause: unknown,
    { since, resource }: { since?: number; resource?: string } = {},
  ): HoldfastError {
    const silentMs = since === undefined ? null : this.#env.now() - since
    if (cause instanceof Silence && silentMs !== null) return this.silent(silentMs, { cause, resource })
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

  /** The error for a caller whose wait ended while the store did not answer. */
  endedBy(failure: unknown, resource: string | undefined): HoldfastError {
    const told = this.unavailable(failure)
    return new HoldfastError('STORE_UNAVAILABLE', told.message, {
      store: this.#limits.storeName,
      retryable: true,
      cause: failure,
      ...(resource === undefined ? {} : { resource }),
    })
  }

  /** The error for a store that was silent for `silentMs`. */
  silent(
    silentMs: number,
    { cause, resource }: { cause?: unknown; resource?: string | undefined } = {},
  ): HoldfastError {
    const store = this.#limits.storeName
    const trouble = this.#limits.trouble()
    const why = trouble === null ? '' : ` (${trouble})`
    // Timers fire a little late; report the configured time.
    const isAll = silentMs >= this.storeTimeoutMs
    const time = formatMs(isAll ? this.storeTimeoutMs : Math.round(silentMs))
    const advice = `check that it is up and reachable${isAll ? ', or raise storeTimeout' : ''}`
    const message = `The ${store} store did not answer within ${time}${why}; ${advice}`
    return new Silence('STORE_UNAVAILABLE', message, {
      store,
      retryable: true,
      ...(resource === undefined ? {} : { resource }),
      ...(cause === undefined ? {} : { cause }),
    })
  }
}
