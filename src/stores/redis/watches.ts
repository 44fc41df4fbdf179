import type { Names } from './names.js'
import type { Listener, RedisSubscription } from './subscription.js'

interface Watch {
  readonly listener: Listener
  /** Resolves when changes are heard. */
  readonly listening: Promise<void>
  /** Whether somebody wants to be told of the next change. */
  isWanted: boolean
  /** The number of the newest change that the reader has seen; null while it reads. */
  seen: number | null
  /** The number of the newest change that was told. */
  told: number
}

/** Whoever was told of a change mostly reads and watches again: so many subscriptions that nobody needs now are kept for that. */
const MOST_IDLE = 100

/**
 * The states that one client watches, each by a subscription to the state's own channel: the server keeps nothing for it that could be left
 * behind. A watch ends with the first change that came after what was read.
 */
export class RedisWatches {
  readonly #subscription: RedisSubscription
  readonly #names: Names
  readonly #onChange: (key: string) => void
  /** The one that was wanted last is the last. */
  readonly #watches = new Map<string, Watch>()

  constructor(subscription: RedisSubscription, names: Names, onChange: (key: string) => void) {
    this.#subscription = subscription
    this.#names = names
    this.#onChange = onChange
  }

  /** Before the state is read, so that no change can slip in between. Resolves when changes are heard. */
  async begin(key: string): Promise<void> {
    const watch = this.#watches.get(key) ?? this.#listen(key)
    watch.isWanted = true
    // What was heard before the state is read is in what will be read.
    watch.seen = null
    watch.told = 0
    this.#watches.delete(key)
    this.#watches.set(key, watch)
    this.#forgetIdle()
    try {
      await watch.listening
    } catch (error) {
      void this.#forget(key, watch)
      throw error
    }
  }

  unwatch(key: string): void {
    const watch = this.#watches.get(key)
    if (watch) watch.isWanted = false
    this.#forgetIdle()
  }

  /** After it was read: `number` is that of its newest change. */
  read(key: string, number: number): void {
    const watch = this.#watches.get(key)
    if (!watch) return
    watch.seen = number
    this.#onTold(key, watch.told)
  }

  async end(): Promise<void> {
    await Promise.all([...this.#watches].map(([key, watch]) => this.#forget(key, watch)))
  }

  #listen(key: string): Watch {
    const listener: Listener = {
      onMessage: (number) => this.#onTold(key, Number(number)),
      // The client's own channel, on the same connection, tells of gaps.
      onGap: () => {},
    }
    const listening = this.#subscription.listen(this.#names.stateChannel(key), listener)
    return { listener, listening, isWanted: true, seen: null, told: 0 }
  }

  #onTold(key: string, number: number): void {
    const watch = this.#watches.get(key)
    if (!watch) return
    watch.told = Math.max(watch.told, number)
    if (!watch.isWanted || watch.seen === null || watch.told <= watch.seen) return
    watch.isWanted = false
    this.#onChange(key)
  }

  #forgetIdle(): void {
    if (this.#watches.size <= MOST_IDLE) return
    const idle = [...this.#watches].filter(([, watch]) => !watch.isWanted)
    for (const [key, watch] of idle.slice(0, Math.max(0, idle.length - MOST_IDLE)))
      void this.#forget(key, watch)
  }

  async #forget(key: string, watch: Watch): Promise<void> {
    if (this.#watches.get(key) !== watch) return
    this.#watches.delete(key)
    await this.#subscription.leave(this.#names.stateChannel(key), watch.listener)
  }
}
