import type { RedisNames } from './names.js'
import type { ChannelListener, RedisSubscription } from './subscription.js'

interface Watch {
  readonly listener: ChannelListener
  /** Resolves when the channel is subscribed. */
  readonly listening: Promise<void>
  /** Whether the client wants to be told of the next change. */
  isWanted: boolean
  /** The number of the newest change that the reader has seen; null while it reads. */
  seen: number | null
  /** The number of the newest change that a message told of. */
  told: number
}

/**
 * How many unused subscriptions are kept: a client that was told of a change mostly reads and
 * watches again.
 */
const MOST_IDLE = 100

/**
 * The states that one client watches, each by a subscription to the state's own channel, so that a
 * dead watcher leaves nothing behind on the server. A watch ends with the first change that is
 * newer than what was read.
 */
export class RedisWatches {
  readonly #subscription: RedisSubscription
  readonly #names: RedisNames
  readonly #onChange: (key: string) => void
  /** In the order in which they were last used. */
  readonly #watches = new Map<string, Watch>()

  constructor(subscription: RedisSubscription, names: RedisNames, onChange: (key: string) => void) {
    this.#subscription = subscription
    this.#names = names
    this.#onChange = onChange
  }

  /**
   * Called before the state is read, so that no change is missed in between. Resolves when the
   * channel is subscribed.
   */
  async begin(key: string): Promise<void> {
    const watch = this.#watches.get(key) ?? this.#listen(key)
    watch.isWanted = true
    // The reading that follows includes every change so far.
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

  /** Called after the state was read: `number` is that of its newest change. */
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
    const listener: ChannelListener = {
      onMessage: (number) => this.#onTold(key, Number(number)),
      // The client's own channel is on the same connection, and tells of gaps.
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
