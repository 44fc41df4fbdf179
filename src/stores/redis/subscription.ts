import { backoffMs } from '../../base/backoff.js'
import type { Cancel, Env } from '../../base/env.js'
import type { Driver, Ear } from './driver.js'
import { explain } from './failures.js'

export interface Listener {
  onMessage(message: string): void
  /** The channel is heard from now on, for the first time or again: something may have been missed until now. */
  onGap(): void
}

/** So often a word is sent to oneself. Twice that long is the longest that an ear which hears nothing goes unnoticed. */
const ECHO_EVERY_MS = 5000
const FIRST_RETRY_MS = 20
const LONGEST_RETRY_MS = 1000
/** After so many failures, some 10 s, there is time between two attempts for a process to end that has nothing else to do. */
const MANY_FAILURES = 15
const LONG_RETRY_MS = 5000

/** The one connection for messages of a store value, for all its clients and channels. It comes back whenever it is cut. */
export class RedisSubscription {
  readonly #env: Env
  readonly #driver: () => Promise<Driver>
  readonly #listeners = new Map<string, Set<Listener>>()
  /** The channels whose end the server has not confirmed yet. */
  readonly #leaving = new Map<string, Promise<unknown>>()
  #ear: Ear | undefined
  #opening: Promise<void> | undefined
  #failures = 0
  #cancelRetry: Cancel = () => {}
  readonly #echoChannel: string
  #isEchoDue = false
  #cancelEcho: Cancel = () => {}
  /** Why the server refuses to let us listen, where that is final. */
  refusal: Error | undefined
  #isActive = false

  constructor(env: Env, prefix: string, driver: () => Promise<Driver>) {
    this.#env = env
    this.#driver = driver
    this.#echoChannel = `${prefix}:echo:${env.id()}`
  }

  /** Whether the messages of all channels arrive, as far as is known. */
  get isActive(): boolean {
    return this.#isActive
  }

  /** Resolves when the channel is heard. If that fails, it is tried again in the background; `onGap` tells. */
  async listen(channel: string, listener: Listener): Promise<void> {
    const others = this.#listeners.get(channel)
    if (others) others.add(listener)
    else this.#listeners.set(channel, new Set([listener]))
    // A client may take the channel for subscribed until it has heard that it is not any more.
    await this.#leaving.get(channel)
    if (!this.#ear) return this.#open()
    const ear = this.#ear
    try {
      await this.#subscribe(ear, [channel])
    } catch (error) {
      // Refused, but the connection lives on: only opening anew tries again.
      if (this.#ear === ear) {
        this.close()
        this.#retry()
      }
      throw error
    }
  }

  async leave(channel: string, listener: Listener): Promise<void> {
    const listeners = this.#listeners.get(channel)
    listeners?.delete(listener)
    if (listeners === undefined || listeners.size > 0) return
    this.#listeners.delete(channel)
    if (this.#listeners.size === 0) return this.close()
    const leaving = Promise.resolve(this.#ear?.unsubscribe(channel)).catch(() => {})
    this.#leaving.set(channel, leaving)
    await leaving
    if (this.#leaving.get(channel) === leaving) this.#leaving.delete(channel)
  }

  close(): void {
    this.#cancelRetry()
    this.#cancelEcho()
    const ear = this.#ear
    this.#ear = undefined
    this.#isActive = false
    ear?.close()
  }

  /** What is heard may come from the wrong server. */
  reopen(): void {
    if (!this.#ear) return
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
    let ear: Ear | undefined
    try {
      const driver = await this.#driver()
      const opened: Ear = await driver.openEar({
        onMessage: (channel, message) => {
          if (channel === this.#echoChannel) this.#isEchoDue = false
          for (const listener of this.#listeners.get(channel) ?? []) listener.onMessage(message)
        },
        onEnd: () => this.#onEnd(ear),
      })
      ear = opened
      this.#ear = opened
      await this.#subscribe(opened, [this.#echoChannel])
      this.#isEchoDue = false
      this.#listenForEcho()
      // Those that come while this is under way are taken along by the next round.
      for (let left = [...this.#listeners.keys()]; left.length > 0; ) {
        const known = new Set(this.#listeners.keys())
        await this.#subscribe(opened, left)
        left = [...this.#listeners.keys()].filter((channel) => !known.has(channel))
      }
      this.#failures = 0
      this.#isActive = this.#ear === opened
      if (this.#listeners.size === 0) this.close()
    } catch (error) {
      this.#ear = undefined
      this.#isActive = false
      ear?.close()
      this.#retry()
      throw explain(error)
    }
  }

  async #subscribe(ear: Ear, channels: readonly string[]): Promise<void> {
    try {
      await ear.subscribe(channels)
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
   * A connection that was dropped on the way, or leads to a node that has left its Cluster, looks alive and hears nothing. So a word is
   * sent to our own channel, the way that all news comes.
   */
  #listenForEcho(): void {
    this.#cancelEcho()
    this.#cancelEcho = this.#env.timer(ECHO_EVERY_MS, () => void this.#echo(), { keepAlive: false })
  }

  /** Never rejects. */
  async #echo(): Promise<void> {
    if (!this.#ear) return
    if (this.#isEchoDue) {
      this.close()
      return this.#retry()
    }
    this.#isEchoDue = true
    try {
      await (await this.#driver()).publish(this.#echoChannel, '')
    } catch {
      // Trouble with the commands says nothing about the ear.
      this.#isEchoDue = false
    }
    if (this.#ear) this.#listenForEcho()
  }

  #onEnd(ear: Ear | undefined): void {
    // Before it was open, the failure of the opening tells; after it was given up, nobody cares.
    if (!ear || this.#ear !== ear) return
    this.#ear = undefined
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
