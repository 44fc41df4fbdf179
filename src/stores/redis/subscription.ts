import { backoffMs } from '../../base/backoff.js'
import { deferred } from '../../base/deferred.js'
import type { Cancel, Env } from '../../base/env.js'
import { nothing } from '../../base/nothing.js'
import type { MessageConnection, RedisDriver } from './driver.js'
import { explain, outOfReach } from './failures.js'

export interface ChannelListener {
  onMessage(message: string): void
  /**
   * The channel is subscribed from now on, for the first time or again: messages may have been
   * missed until now.
   */
  onGap(): void
}

/** A connection that is not open and subscribed after this time is given up. */
const OPEN_WITHIN_MS = 5000
/** Interval of the self-ping. A connection that receives nothing is noticed within two of these. */
const PING_INTERVAL_MS = 5000
const FIRST_RETRY_MS = 20
const LONGEST_RETRY_MS = 1000
/**
 * After this many failures, some 10 s, the longer pause lets a process end that has nothing else to
 * do.
 */
const MANY_FAILURES = 15
const LONG_RETRY_MS = 5000

/**
 * The one connection for messages of a store value, for all its clients and channels. It is opened
 * again whenever it is lost.
 */
export class RedisSubscription {
  readonly #env: Env
  readonly #driver: () => Promise<RedisDriver>
  readonly #listeners = new Map<string, Set<ChannelListener>>()
  /** The channels whose end the server has not confirmed yet. */
  readonly #unsubscribing = new Map<string, Promise<unknown>>()
  #connection: MessageConnection | undefined
  #opening: Promise<void> | undefined
  #failures = 0
  #cancelRetry: Cancel = () => {}
  readonly #pingChannel: string
  #isPingPending = false
  #cancelPing: Cancel = () => {}
  /** Why the server refuses the subscription, where trying again does not help. */
  refusal: Error | undefined
  #isActive = false

  constructor(env: Env, prefix: string, driver: () => Promise<RedisDriver>) {
    this.#env = env
    this.#driver = driver
    this.#pingChannel = `${prefix}:echo:${env.id()}`
  }

  /** Whether messages arrive, as far as is known. */
  get isActive(): boolean {
    return this.#isActive
  }

  /**
   * Resolves when the channel is subscribed. A failure is retried in the background, and `onGap`
   * tells of the success.
   */
  async listen(channel: string, listener: ChannelListener): Promise<void> {
    const others = this.#listeners.get(channel)
    if (others) others.add(listener)
    else this.#listeners.set(channel, new Set([listener]))
    // A driver may take the channel for subscribed until the server has confirmed its end.
    await this.#unsubscribing.get(channel)
    if (!this.#connection) return this.#open()
    const connection = this.#connection
    try {
      await this.#subscribe(connection, [channel])
    } catch (error) {
      // The connection is still open, so only closing it leads to a retry.
      if (this.#connection === connection) {
        this.close()
        this.#retry()
      }
      throw error
    }
  }

  async leave(channel: string, listener: ChannelListener): Promise<void> {
    const listeners = this.#listeners.get(channel)
    listeners?.delete(listener)
    if (listeners === undefined || listeners.size > 0) return
    this.#listeners.delete(channel)
    if (this.#listeners.size === 0) return this.close()
    const confirmed = Promise.resolve(this.#connection?.unsubscribe(channel)).catch(() => {})
    this.#unsubscribing.set(channel, confirmed)
    await confirmed
    if (this.#unsubscribing.get(channel) === confirmed) this.#unsubscribing.delete(channel)
  }

  close(): void {
    this.#cancelRetry()
    this.#cancelPing()
    const connection = this.#connection
    this.#connection = undefined
    this.#isActive = false
    connection?.close()
  }

  /** The connection may lead to a server that is no longer the master. */
  reopen(): void {
    if (!this.#connection) return
    this.close()
    this.#retry()
  }

  #open(): Promise<void> {
    this.#opening ??= this.#openOnce().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  async #openOnce(): Promise<void> {
    this.#cancelRetry()
    const attempt = new AbortController()
    const silent = deferred<never>()
    const onSilence = (): void => silent.reject(outOfReach('its connection for messages was not answered'))
    let cancel = nothing
    try {
      const driver = await this.#driver()
      cancel = this.#env.timer(OPEN_WITHIN_MS, onSilence, { keepAlive: false })
      const opened = await Promise.race([silent.promise, this.#connect(driver, attempt.signal)])
      this.#failures = 0
      this.#isActive = this.#connection === opened
      if (this.#listeners.size === 0) this.close()
    } catch (error) {
      this.#connection = undefined
      this.#isActive = false
      attempt.abort()
      this.#retry()
      throw explain(error)
    } finally {
      cancel()
    }
  }

  /** Opens the connection, and subscribes all channels. */
  async #connect(driver: RedisDriver, signal: AbortSignal): Promise<MessageConnection> {
    let connection: MessageConnection | undefined
    const opened = await driver.openMessages({
      onMessage: (channel, message) => {
        if (channel === this.#pingChannel) this.#isPingPending = false
        for (const listener of this.#listeners.get(channel) ?? []) listener.onMessage(message)
      },
      onEnd: () => this.#onEnd(connection),
      signal,
    })
    signal.throwIfAborted()
    connection = opened
    this.#connection = opened
    await this.#subscribe(opened, [this.#pingChannel])
    this.#isPingPending = false
    this.#pingLater()
    // Channels that are added meanwhile are subscribed in the next round.
    for (let left = [...this.#listeners.keys()]; left.length > 0; ) {
      const known = new Set(this.#listeners.keys())
      await this.#subscribe(opened, left)
      left = [...this.#listeners.keys()].filter((channel) => !known.has(channel))
    }
    return opened
  }

  async #subscribe(connection: MessageConnection, channels: readonly string[]): Promise<void> {
    try {
      await connection.subscribe(channels)
      this.refusal = undefined
    } catch (error) {
      const explained = explain(error)
      if (!explained.retryable) this.refusal = explained
      throw explained
    }
    this.#tellGap(channels)
  }

  #tellGap(channels: readonly string[]): void {
    for (const channel of channels)
      for (const listener of this.#listeners.get(channel) ?? []) listener.onGap()
  }

  /**
   * A connection that a router has dropped, or that leads to a node that has left its Cluster,
   * looks alive and receives nothing. So a message to a channel of our own is sent in the way of
   * all messages.
   */
  #pingLater(): void {
    this.#cancelPing()
    this.#cancelPing = this.#env.timer(PING_INTERVAL_MS, () => void this.#ping(), { keepAlive: false })
  }

  /** Never rejects. */
  async #ping(): Promise<void> {
    if (!this.#connection) return
    if (this.#isPingPending) {
      this.close()
      return this.#retry()
    }
    this.#isPingPending = true
    try {
      await (await this.#driver()).publish(this.#pingChannel, '')
    } catch {
      // A failure of the connection for commands says nothing about this one.
      this.#isPingPending = false
    }
    if (this.#connection) this.#pingLater()
  }

  #onEnd(connection: MessageConnection | undefined): void {
    // While it opens, `#openOnce` handles the failure; a connection that was replaced does not
    // count.
    if (!connection || this.#connection !== connection) return
    this.#connection = undefined
    this.#isActive = false
    this.#retry()
  }

  #retry(): void {
    if (this.#listeners.size === 0) return
    this.#cancelRetry()
    const longestMs = ++this.#failures > MANY_FAILURES ? LONG_RETRY_MS : LONGEST_RETRY_MS
    const pauseMs = backoffMs(this.#failures, this.#env.random(), FIRST_RETRY_MS, longestMs)
    const open = (): void => void this.#open().catch(() => {})
    this.#cancelRetry = this.#env.timer(pauseMs, open, { keepAlive: false })
  }
}
