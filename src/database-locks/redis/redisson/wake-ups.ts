import type { Cancel, Env } from '../../../base/env.js'
import { nothing } from '../../../base/nothing.js'
import { type ChannelListener, RedisSubscription } from '../../../stores/redis/subscription.js'
import type { PeerCalls } from '../calls.js'
import type { Pause } from '../pause.js'
import { WAKE_ALL } from './lua/shared.js'

/** A channel is kept for this time after its last waiter: the next one often comes soon. */
const LINGER_MS = 10_000

interface Channel {
  /** In the order of arrival. */
  readonly waiters: Set<Pause>
  readonly listener: ChannelListener
  listening: Promise<void>
  cancelLinger: Cancel
}

/** Whom a message wakes: all waiters of this process, or the first of them. */
export type Audience = (message: string) => 'all' | 'first'

/** A lock goes to one waiter; a writer's release lets all readers in. */
export const lockAudience: Audience = (message) => (message === WAKE_ALL ? 'all' : 'first')
export const everybody: Audience = () => 'all'

/** The waiters of one client, and the channels by which Redisson and we tell of a release. */
export class WakeUps {
  readonly #env: Env
  readonly #subscription: RedisSubscription
  readonly #channels = new Map<string, Channel>()

  constructor(calls: PeerCalls) {
    this.#env = calls.env
    this.#subscription = new RedisSubscription(calls.env, 'holdfast', async () => calls.driver)
  }

  /** Whether messages arrive, as far as is known. */
  get isActive(): boolean {
    return this.#subscription.isActive
  }

  /** Resolves when the channel is subscribed. */
  async listen(name: string, pause: Pause, audience: Audience): Promise<void> {
    const channel = this.#channels.get(name) ?? this.#open(name, audience)
    channel.cancelLinger()
    channel.cancelLinger = nothing
    channel.waiters.add(pause)
    await channel.listening
  }

  unlisten(name: string, pause: Pause): void {
    const channel = this.#channels.get(name)
    if (!channel?.waiters.delete(pause)) return
    // Its wake-up was for one waiter; it is not lost because that one has left.
    if (pause.takeWakeUp()) this.wakeFirst(name)
    if (channel.waiters.size > 0) return
    const close = (): void => this.#close(name, channel)
    channel.cancelLinger = this.#env.timer(LINGER_MS, close, { keepAlive: false })
  }

  wakeFirst(name: string): void {
    const [first] = this.#channels.get(name)?.waiters ?? []
    first?.wake()
  }

  #open(name: string, audience: Audience): Channel {
    const waiters = new Set<Pause>()
    const wakeAll = (): void => {
      for (const pause of waiters) pause.wake()
    }
    const listener: ChannelListener = {
      onMessage: (message) => (audience(message) === 'all' ? wakeAll() : this.wakeFirst(name)),
      onGap: () => {
        // Also after a first attempt that has failed.
        channel.listening = Promise.resolve()
        wakeAll()
      },
    }
    const listening = this.#subscription.listen(name, listener)
    const channel: Channel = { waiters, listener, listening, cancelLinger: nothing }
    this.#channels.set(name, channel)
    // The subscription tries again by itself, and tells of its success as of a gap.
    listening.catch(nothing)
    return channel
  }

  #close(name: string, channel: Channel): void {
    this.#channels.delete(name)
    void this.#subscription.leave(name, channel.listener)
  }
}
