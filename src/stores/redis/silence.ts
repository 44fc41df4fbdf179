import type { Cancel, Env } from '../../base/env.js'

/** A connection is given up when it was asked, and has answered nothing, for one to two of these. */
const PERIOD_MS = 2500
const READING_MS = 100

/**
 * Notices that a connection answers nothing although it stands: a router has forgotten it, or the machine behind it is gone. TCP itself
 * takes a quarter of an hour for that. It counts instead of setting a timer for each call, because calls are many and silence is rare.
 */
export class Silence {
  readonly #env: Env
  readonly #onSilent: () => void
  #pending = 0
  #answers = 0
  /** At the last look: how many answers there were, if something was pending then. */
  #seen: number | null = null
  #cancel: Cancel
  readonly #onAnswer = (): void => {
    this.#pending--
    this.#answers++
  }

  constructor(env: Env, onSilent: () => void) {
    this.#env = env
    this.#onSilent = onSilent
    this.#cancel = this.#lookLater()
  }

  watch(call: Promise<unknown>): void {
    this.#pending++
    call.then(this.#onAnswer, this.#onAnswer)
  }

  stop(): void {
    this.#cancel()
  }

  #lookLater(): Cancel {
    return this.#env.timer(PERIOD_MS, () => this.#look(), { keepAlive: false })
  }

  #look(): void {
    if (this.#seen === this.#answers) this.#cancel = this.#lookTwice()
    else this.#goOn()
  }

  /** After a pause of this process the timers come first: answers may have been here for long, unread. */
  #lookTwice(): Cancel {
    const decide = (): void => (this.#seen === this.#answers ? this.#onSilent() : this.#goOn())
    return this.#env.timer(READING_MS, decide, { keepAlive: false })
  }

  #goOn(): void {
    this.#seen = this.#pending > 0 ? this.#answers : null
    this.#cancel = this.#lookLater()
  }
}
