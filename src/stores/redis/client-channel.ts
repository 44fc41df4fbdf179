import type { Push } from '../../contract/store.js'
import type { RedisNames } from './names.js'
import { parseMessage } from './replies.js'
import type { ChannelListener, RedisSubscription } from './subscription.js'

/**
 * The channel on which one client is told about its claims. It is subscribed beside the first
 * claim, which so loses no time.
 */
export class ClientChannel {
  readonly name: string
  readonly #subscription: RedisSubscription
  readonly #push: (news: Push) => void
  readonly #listener: ChannelListener
  /** Resolves when the channel is subscribed for the first time, or when that has failed. */
  #subscribing: Promise<unknown> | undefined
  #isSubscribed = false
  #mayHaveMissed = false

  constructor(
    subscription: RedisSubscription,
    names: RedisNames,
    client: string,
    push: (news: Push) => void,
  ) {
    this.name = names.clientChannel(client)
    this.#subscription = subscription
    this.#push = push
    this.#listener = {
      onMessage: (message) => {
        const news = parseMessage(message, names)
        if (news) push(news)
      },
      onGap: () => this.#onGap(),
    }
  }

  /** Once true, it stays so: a lost subscription is renewed, and `gap` tells of it. */
  get isSubscribed(): boolean {
    return this.#isSubscribed
  }

  subscribe(): Promise<unknown> {
    this.#subscribing ??= this.#subscription.listen(this.name, this.#listener).catch(() => {})
    return this.#subscribing
  }

  /**
   * A claim was answered. Messages about it may have been missed if the channel was not subscribed
   * yet.
   */
  onAnswer(): void {
    this.#mayHaveMissed ||= !this.#isSubscribed
  }

  /** Does not wait for the server's confirmation: the server may be silent. */
  leave(): void {
    void this.#subscription.leave(this.name, this.#listener)
  }

  #onGap(): void {
    if (this.#isSubscribed || this.#mayHaveMissed) this.#push({ type: 'gap' })
    this.#isSubscribed = true
  }
}
