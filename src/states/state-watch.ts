import type { Cancel, Env } from '../base/env.js'

/** Interval of the poll: the push of a change may get lost. */
const POLL_EVERY_MS = 5000

/** A caller that waits for a value. */
export interface StateWaiter {
  see(value: string | null): void
  fail(error: unknown): void
}

export interface StateWatchContext {
  readonly env: Env
  /** Reads the value; with `watch`, asks the store to report its next change. */
  read(watch: boolean): Promise<string | null>
  /** The last waiter has left. */
  onIdle(): void
}

/** All waiters of this client for one value: each change is read once for all of them. */
export class StateWatch {
  readonly #context: StateWatchContext
  readonly #waiters = new Set<StateWaiter>()
  #isStale = false
  #isLooking = false
  #stopTimer: Cancel = () => {}

  constructor(context: StateWatchContext) {
    this.#context = context
  }

  /** The returned function removes the waiter. */
  add(waiter: StateWaiter): () => void {
    this.#waiters.add(waiter)
    this.look()
    return () => {
      if (!this.#waiters.delete(waiter) || this.#waiters.size > 0) return
      this.#stopTimer()
      this.#context.onIdle()
    }
  }

  /** Reads the value and shows it to all waiters. */
  look(): void {
    this.#isStale = true
    if (!this.#isLooking) void this.#look()
  }

  fail(error: unknown): void {
    for (const waiter of this.#waiters) waiter.fail(error)
  }

  async #show(watch: boolean): Promise<void> {
    // A waiter that arrives during the read needs a newer value.
    const present = [...this.#waiters]
    try {
      const value = await this.#context.read(watch)
      for (const waiter of present) waiter.see(value)
    } catch (error) {
      for (const waiter of present) waiter.fail(error)
    }
    // Lets satisfied waiters leave, so that nothing is read or timed for none.
    await null
  }

  /** Never rejects: waiters get the error. */
  async #look(): Promise<void> {
    this.#isLooking = true
    this.#stopTimer()
    while (this.#isStale && this.#waiters.size > 0) {
      this.#isStale = false
      // Most waiters need one read: a watch would outlive them in the store.
      await this.#show(false)
      if (this.#waiters.size > 0) await this.#show(true)
    }
    this.#isLooking = false
    if (this.#waiters.size > 0)
      this.#stopTimer = this.#context.env.timer(POLL_EVERY_MS, () => this.look(), { keepAlive: true })
  }
}
