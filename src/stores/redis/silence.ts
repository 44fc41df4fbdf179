import type { Cancel, Env } from '../../base/env.js'

/** A connection that owes an answer is given up after one to two of these without any. */
const PERIOD_MS = 2500
const READING_MS = 100

/**
 * Notices an open connection that answers nothing: a router has dropped it, or the machine behind
 * it is down. TCP itself takes a quarter of an hour for that. It counts answers instead of setting
 * a timer for each call, because calls are many.
 */
export class Silence {
  readonly #env: Env
  readonly #onSilent: () => void
  readonly #periodMs: number
  #pending = 0
  #answers = 0
  /** How many answers there were at the last check, if a call was pending then. */
  #seen: number | null = null
  #cancel: Cancel
  readonly #onAnswer = (): void => {
    this.#pending--
    this.#answers++
  }

  /** `longestMs`: how long the server itself may take for an answer. */
  constructor(env: Env, onSilent: () => void, longestMs: number) {
    this.#env = env
    this.#onSilent = onSilent
    this.#periodMs = PERIOD_MS + longestMs
    this.#cancel = this.#checkLater()
  }

  watch(call: Promise<unknown>): void {
    this.#pending++
    call.then(this.#onAnswer, this.#onAnswer)
  }

  stop(): void {
    this.#cancel()
  }

  #checkLater(): Cancel {
    return this.#env.timer(this.#periodMs, () => this.#check(), { keepAlive: false })
  }

  #check(): void {
    if (this.#seen === this.#answers) this.#cancel = this.#checkTwice()
    else this.#goOn()
  }

  /**
   * After a pause of this process the timers fire first: answers may have arrived and not been read
   * yet.
   */
  #checkTwice(): Cancel {
    const decide = (): void => (this.#seen === this.#answers ? this.#onSilent() : this.#goOn())
    return this.#env.timer(READING_MS, decide, { keepAlive: false })
  }

  #goOn(): void {
    this.#seen = this.#pending > 0 ? this.#answers : null
    this.#cancel = this.#checkLater()
  }
}
