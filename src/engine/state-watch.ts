import type { Cancel, Env } from '../base/env.js'

/** How often somebody who waits looks by himself: the push of a change may get lost. */
const LOOK_EVERY_MS = 5000

/** Somebody who waits for a value. */
export interface Onlooker {
  see(value: string | null): void
  fail(error: unknown): void
}

export interface StateWatchContext {
  readonly env: Env
  /** Reads the value; with `watch`, asks to be told of its next change. */
  read(watch: boolean): Promise<string | null>
  /** Nobody waits any more. */
  onIdle(): void
}

/** Everybody in this client who waits for one state value: however many they are, each change is read once. */
export class StateWatch {
  readonly #context: StateWatchContext
  readonly #onlookers = new Set<Onlooker>()
  #isStale = false
  #isLooking = false
  #stopTimer: Cancel = () => {}

  constructor(context: StateWatchContext) {
    this.#context = context
  }

  /** The returned function ends the interest. */
  add(onlooker: Onlooker): () => void {
    this.#onlookers.add(onlooker)
    this.look()
    return () => {
      if (!this.#onlookers.delete(onlooker) || this.#onlookers.size > 0) return
      this.#stopTimer()
      this.#context.onIdle()
    }
  }

  /** Reads the value and shows it to everybody. */
  look(): void {
    this.#isStale = true
    if (!this.#isLooking) void this.#look()
  }

  fail(error: unknown): void {
    for (const onlooker of this.#onlookers) onlooker.fail(error)
  }

  async #show(watch: boolean): Promise<void> {
    // Those who come while it is being read want to see what is there now, not what was.
    const present = [...this.#onlookers]
    try {
      const value = await this.#context.read(watch)
      for (const onlooker of present) onlooker.see(value)
    } catch (error) {
      for (const onlooker of present) onlooker.fail(error)
    }
    // Lets those who are content leave, so that nothing is read or timed for nobody.
    await null
  }

  /** Never rejects: what goes wrong is told to those who wait. */
  async #look(): Promise<void> {
    this.#isLooking = true
    this.#stopTimer()
    while (this.#isStale && this.#onlookers.size > 0) {
      this.#isStale = false
      // Most who come find what they want. A watch for nobody would stay in the store until the next change.
      await this.#show(false)
      if (this.#onlookers.size > 0) await this.#show(true)
    }
    this.#isLooking = false
    if (this.#onlookers.size > 0)
      this.#stopTimer = this.#context.env.timer(LOOK_EVERY_MS, () => this.look(), { keepAlive: true })
  }
}
