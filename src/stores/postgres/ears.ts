import { backoffMs } from '../../base/backoff.js'
import { deferred } from '../../base/deferred.js'
import type { Cancel, Env } from '../../base/env.js'
import type { Driver, Ear } from './driver.js'

export interface EarsContext {
  readonly env: Env
  readonly channel: string
  /** The driver, opened. */
  open(): Promise<Driver>
  onMessage(text: string): void
  /** Messages are heard from now on, or are not any more: either way something may have been missed. */
  onGap(): void
}

const ECHO = 'echo'
/** So often a word is sent to oneself. Twice that long is the longest that an ear which hears nothing goes unnoticed. */
const ECHO_EVERY_MS = 5000
const FIRST_ECHO_WITHIN_MS = 2000
const FIRST_RETRY_MS = 20
const LONGEST_RETRY_MS = 1000
/** A pooler that drops LISTEN will go on doing so; a server that was only slow will not. */
const FIRST_RETRY_DEAF_MS = 1000
const LONGEST_RETRY_DEAF_MS = 60_000

/**
 * The one connection for messages of a store value. It counts as hearing only after a word that was sent over another connection has come
 * back: behind a pooler LISTEN succeeds, and nothing is ever heard.
 */
export class Ears {
  readonly #context: EarsContext
  #ear: Ear | undefined
  #isOpen = false
  #isHearing = false
  /** Whether messages are heard is known; until then it is worth waiting for. */
  #known = deferred<void>()
  #isEchoDue = false
  #failures = 0
  /** The attempt to listen that counts: one that ends after a newer one has begun gives its connection back. */
  #attempt = 0
  #cancelTimer: Cancel = () => {}

  constructor(context: EarsContext) {
    this.#context = context
  }

  get isHearing(): boolean {
    return this.#isHearing
  }

  /** Resolves when messages are heard, or will not be heard for now. */
  get known(): Promise<void> {
    return this.#known.promise
  }

  /** From the first time on it is tried until it is closed. */
  listen(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    this.#known = deferred()
    void this.#listen()
  }

  close(): void {
    this.#isOpen = false
    this.#hangUp()
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
      const ear = await driver.listen(channel, {
        onMessage: (text) => this.#onMessage(text),
        onEnd: retry,
      })
      if (!this.#isOpen || attempt !== this.#attempt) return ear?.close()
      // Where no connection can be spared, nothing will change that.
      if (ear === null) return this.#known.resolve()
      this.#ear = ear
      await this.#echo(driver)
    } catch {
      retry()
    }
  }

  /** The time to hear it begins with the answer: a call that waits for a connection, or a busy server, says nothing about the ear. */
  async #echo(driver: Driver): Promise<void> {
    const ear = this.#ear
    this.#isEchoDue = true
    await driver.ask('SELECT pg_notify($1, $2)', [this.#context.channel, ECHO])
    if (ear !== this.#ear) return
    const patienceMs = this.#isHearing ? ECHO_EVERY_MS : FIRST_ECHO_WITHIN_MS
    this.#after(patienceMs, () => void this.#checkEcho())
  }

  /** Never rejects. */
  async #checkEcho(): Promise<void> {
    if (this.#isEchoDue) return this.#isHearing ? this.#retry() : this.#retryLater()
    const ear = this.#ear
    try {
      await this.#echo(await this.#context.open())
    } catch {
      // Trouble with the calls says nothing about the ear.
      if (ear !== this.#ear) return
      this.#isEchoDue = false
      this.#after(ECHO_EVERY_MS, () => void this.#checkEcho())
    }
  }

  #onMessage(text: string): void {
    if (text !== ECHO) return this.#context.onMessage(text)
    this.#isEchoDue = false
    this.#failures = 0
    this.#hear(true)
    this.#known.resolve()
  }

  #hear(isHearing: boolean): void {
    if (this.#isHearing === isHearing) return
    this.#isHearing = isHearing
    this.#context.onGap()
  }

  #retry(): void {
    const { env } = this.#context
    this.#hangUp()
    this.#after(
      backoffMs(++this.#failures, env.random(), FIRST_RETRY_MS, LONGEST_RETRY_MS),
      () => void this.#listen(),
    )
  }

  #retryLater(): void {
    const { env } = this.#context
    this.#hangUp()
    const pauseMs = backoffMs(++this.#failures, env.random(), FIRST_RETRY_DEAF_MS, LONGEST_RETRY_DEAF_MS)
    this.#after(pauseMs, () => void this.#listen())
  }

  #hangUp(): void {
    this.#known.resolve()
    this.#cancelTimer()
    const ear = this.#ear
    this.#ear = undefined
    ear?.close()
    this.#hear(false)
  }

  #after(ms: number, run: () => void): void {
    this.#cancelTimer()
    if (this.#isOpen) this.#cancelTimer = this.#context.env.timer(ms, run, { keepAlive: false })
  }
}
