import { backoffMs } from '../../base/backoff.js'
import { deferred } from '../../base/deferred.js'
import type { Cancel, Env } from '../../base/env.js'
import type { PostgresDriver, PostgresListener } from './driver.js'

export interface PostgresSubscriptionContext {
  readonly env: Env
  readonly channel: string
  /** The driver, opened. */
  open(): Promise<PostgresDriver>
  onMessage(text: string): void
  /** Messages are heard from now on, or no longer: either way some may have been missed. */
  onGap(): void
}

const PING = 'ping'
/** Interval of the self-ping: a dead subscription is noticed within two of these. */
const PING_INTERVAL_MS = 5000
const FIRST_PING_WITHIN_MS = 2000
const FIRST_RETRY_MS = 20
const LONGEST_RETRY_MS = 1000
/** Where the first ping does not come back: probably a pooler that drops LISTEN. */
const FIRST_RETRY_DEAF_MS = 1000
const LONGEST_RETRY_DEAF_MS = 60_000

/**
 * The one connection for messages of a store value. It counts as hearing only after a ping that was
 * sent over another connection has come back: behind a pooler LISTEN succeeds, and nothing arrives.
 */
export class PostgresSubscription {
  readonly #context: PostgresSubscriptionContext
  #listener: PostgresListener | undefined
  #isOpen = false
  #isHearing = false
  /** Resolves once it is known whether messages are heard. */
  #known = deferred<void>()
  #isPingDue = false
  #failures = 0
  /** The newest attempt to listen: an older one that succeeds late gives its connection back. */
  #attempt = 0
  #cancelTimer: Cancel = () => {}

  constructor(context: PostgresSubscriptionContext) {
    this.#context = context
  }

  get isHearing(): boolean {
    return this.#isHearing
  }

  /** Resolves when messages are heard, or will not be heard for now. */
  get known(): Promise<void> {
    return this.#known.promise
  }

  /** Starts it; it is retried until it is closed. */
  open(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    this.#known = deferred()
    void this.#listen()
  }

  close(): void {
    this.#isOpen = false
    this.#drop()
  }

  /** Never rejects. */
  async #listen(): Promise<void> {
    const { open, channel } = this.#context
    const attempt = ++this.#attempt
    const retry = (): void => {
      if (attempt === this.#attempt) this.#retry()
    }
    try {
      const driver = await open()
      const listener = await driver.listen(channel, {
        onMessage: (text) => this.#onMessage(text),
        onEnd: retry,
      })
      if (!this.#isOpen || attempt !== this.#attempt) return listener?.close()
      // The pool has no connection to spare, and a retry would not change that.
      if (listener === null) return this.#known.resolve()
      this.#listener = listener
      await this.#ping(driver)
    } catch {
      retry()
    }
  }

  /** The time to hear it begins with the server's answer: the call itself may be slow. */
  async #ping(driver: PostgresDriver): Promise<void> {
    const listener = this.#listener
    this.#isPingDue = true
    await driver.ask('SELECT pg_notify($1, $2)', [this.#context.channel, PING])
    if (listener !== this.#listener) return
    const patienceMs = this.#isHearing ? PING_INTERVAL_MS : FIRST_PING_WITHIN_MS
    this.#after(patienceMs, () => void this.#checkPing())
  }

  /** Never rejects. */
  async #checkPing(): Promise<void> {
    if (this.#isPingDue) return this.#isHearing ? this.#retry() : this.#retryLater()
    const listener = this.#listener
    try {
      await this.#ping(await this.#context.open())
    } catch {
      // A call that fails says nothing about the subscription.
      if (listener !== this.#listener) return
      this.#isPingDue = false
      this.#after(PING_INTERVAL_MS, () => void this.#checkPing())
    }
  }

  #onMessage(text: string): void {
    if (text !== PING) return this.#context.onMessage(text)
    this.#isPingDue = false
    this.#failures = 0
    this.#setHearing(true)
    this.#known.resolve()
  }

  #setHearing(isHearing: boolean): void {
    if (this.#isHearing === isHearing) return
    this.#isHearing = isHearing
    this.#context.onGap()
  }

  #retry(): void {
    this.#retryWithin(FIRST_RETRY_MS, LONGEST_RETRY_MS)
  }

  #retryLater(): void {
    this.#retryWithin(FIRST_RETRY_DEAF_MS, LONGEST_RETRY_DEAF_MS)
  }

  #retryWithin(firstMs: number, longestMs: number): void {
    this.#drop()
    const pauseMs = backoffMs(++this.#failures, this.#context.env.random(), firstMs, longestMs)
    this.#after(pauseMs, () => void this.#listen())
  }

  #drop(): void {
    this.#known.resolve()
    this.#cancelTimer()
    const listener = this.#listener
    this.#listener = undefined
    listener?.close()
    this.#setHearing(false)
  }

  #after(ms: number, run: () => void): void {
    this.#cancelTimer()
    if (this.#isOpen) this.#cancelTimer = this.#context.env.timer(ms, run, { keepAlive: false })
  }
}
