import { Agenda } from '../base/agenda.js'
import { backoffMs } from '../base/backoff.js'
import { storeChannel } from '../base/channels.js'
import { formatMs } from '../base/duration.js'
import { detached, type Env } from '../base/env.js'
import { type ErrorDetails, HoldfastError, isRetryable } from '../base/errors.js'
import type { StoreFailure } from '../base/events.js'
import { type Linked, LinkedList } from '../base/linked-list.js'
import type { Answer } from '../contract/store.js'

export interface CallLimits {
  readonly storeName: string
  readonly space: string
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
class Silence extends HoldfastError {
  readonly #silentMs: number

  constructor(silentMs: number, message: string, details: ErrorDetails) {
    super('STORE_UNAVAILABLE', message, details)
    this.#silentMs = silentMs
  }

  isShorterThan(ms: number): boolean {
    return this.#silentMs < ms
  }
}

/** By its method: a promise may come from another realm or library. */
export function isPromise<T>(answer: Answer<T>): answer is Promise<T> {
  return typeof (answer as Partial<Promise<T>> | undefined)?.then === 'function'
}

/** What becomes of a call. */
export interface CallListener<T> {
  onAnswer(answer: T): void
  onFailure(error: unknown): void
  /** The answer came after the call was given up. */
  onLate?(answer: T): void
}

/** A call that is under way. */
interface PendingCall extends Linked<PendingCall> {
  readonly sentAt: number
  readonly timeoutMs: number
  readonly heard: Heard
  giveUpAt: number
  giveUp(): void
}

/**
 * Calls to a store, each with a deadline, and retries of those that are safe to repeat. One timer
 * watches all deadlines.
 */
export class Calls {
  readonly #env: Env
  readonly #limits: CallLimits
  readonly #heard = new Heard()
  readonly #pending = new LinkedList<PendingCall>()
  readonly #agenda: Agenda

  constructor(env: Env, limits: CallLimits) {
    this.#env = env
    this.#limits = limits
    this.#agenda = new Agenda(env, () => this.#giveUpLate())
  }

  get storeTimeoutMs(): number {
    return this.#limits.storeTimeoutMs
  }

  /** A third of the timeout, so a request whose reply was lost can be retried in time. */
  get oneCallMs(): number {
    return this.#limits.storeTimeoutMs / 3
  }

  /**
   * Makes a call, and fails it with STORE_UNAVAILABLE when the store was silent for `timeoutMs`.
   * `heard`: the last answer on the same queue of calls.
   */
  start<T>(timeoutMs: number, call: () => Answer<T>, listener: CallListener<T>, heard = this.#heard): void {
    const sentAt = this.#env.now()
    const giveUp = (): void => {
      if (this.#end(pending)) this.#fail(listener, this.silent(timeoutMs))
    }
    const giveUpAt = sentAt + timeoutMs
    const pending: PendingCall = { sentAt, timeoutMs, heard, giveUpAt, giveUp, before: null, after: null }
    const onAnswer = (answer: T): void => {
      if (!this.#end(pending)) return listener.onLate?.(answer)
      heard.note(sentAt, this.#env.now())
      listener.onAnswer(answer)
    }
    const onFailure = (error: unknown): void => {
      if (this.#end(pending)) this.#fail(listener, error)
    }
    this.#pending.push(pending)
    this.#env.keepProcess()
    this.#agenda.by(giveUpAt)
    try {
      // A store may open sockets and watches in a call: they must not carry the async context of
      // this one caller.
      const answering = detached(call)
      if (isPromise(answering)) answering.then(onAnswer, onFailure)
      else onAnswer(answering)
    } catch (error) {
      onFailure(error)
    }
  }

  #fail<T>(listener: CallListener<T>, error: unknown): void {
    const { space, storeName: store } = this.#limits
    if (storeChannel.hasSubscribers) storeChannel.publish({ space, store, error } satisfies StoreFailure)
    listener.onFailure(error)
  }

  /** false: it had ended before. */
  #end(pending: PendingCall): boolean {
    const isFirst = this.#pending.remove(pending)
    if (isFirst) this.#env.letProcessEnd()
    return isFirst
  }

  #giveUpLate(): void {
    const now = this.#env.now()
    let next = Infinity
    const late: PendingCall[] = []
    for (let pending = this.#pending.first; pending; pending = pending.after) {
      const { heard, sentAt, timeoutMs } = pending
      if (pending.giveUpAt <= now) pending.giveUpAt = heard.silentFrom(sentAt) + timeoutMs
      if (pending.giveUpAt > now) next = Math.min(next, pending.giveUpAt)
      else late.push(pending)
    }
    if (next < Infinity) this.#agenda.by(next)
    for (const pending of late) pending.giveUp()
  }

  /** Ends the timer, unless a call is still under way that it has to end. */
  stop(): void {
    if (this.#pending.size === 0) this.#agenda.stop()
  }

  /** As `start`, with a promise. */
  within<T>(timeoutMs: number, call: () => Answer<T>, heard = this.#heard): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.start(timeoutMs, call, { onAnswer: resolve, onFailure: reject }, heard)
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

  /** Repeats a call that may safely be repeated, until `deadline`. `attempt` is 1 at first. */
  repeated<T>(deadline: number, call: (attempt: number) => Answer<T>, heard = this.#heard): Promise<T> {
    const since = this.#env.now()
    return new Promise<T>((resolve, reject) => {
      const send = (attempt: number, before?: unknown): void => {
        const onFailure = (error: unknown): void => {
          const pauseMs = this.retryInMs(attempt)
          if (!isRetryable(error) || this.#env.now() + pauseMs >= deadline)
            return reject(this.unavailable(this.reasonOf(error, before), { since }))
          void this.pause(pauseMs).then(() => send(attempt + 1, error))
        }
        const listener = { onAnswer: resolve, onFailure }
        this.start(this.oneCallUntil(deadline), () => call(attempt), listener, heard)
      }
      send(1)
    })
  }

  /** How long one attempt may take: the last one ends at the deadline. */
  oneCallUntil(deadline: number): number {
    return Math.min(this.oneCallMs, Math.max(1, deadline - this.#env.now()))
  }

  /**
   * Which failure to report: the deadline may cut the last attempt short, and its silence then says
   * less than the failure of the attempt `before`.
   */
  reasonOf(error: unknown, before: unknown): unknown {
    const isCutShort = error instanceof Silence && error.isShorterThan(this.oneCallMs)
    return isCutShort && before !== undefined ? before : error
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
    return new Silence(silentMs, message, {
      store,
      retryable: true,
      ...(resource === undefined ? {} : { resource }),
      ...(cause === undefined ? {} : { cause }),
    })
  }
}
