/// <reference lib="esnext.disposable" preserve="true" />
import { checkSignal } from '../../../base/abort.js'
import type { Duration } from '../../../base/duration.js'
import { HoldfastError, invalid } from '../../../base/errors.js'
import { nothing } from '../../../base/nothing.js'
import { checkOptions, type OptionNames } from '../../../base/options.js'
import { ANSWER_MS, readWait } from '../../limits.js'
import { Acquisition } from '../acquisition.js'
import { untilAnswered } from '../answers.js'
import type { PeerClaim, TakeAnswer } from '../claim.js'
import type { Pause } from '../pause.js'
import type { RedissonClient } from './client.js'
import { readNumber, returnPermits, setPermits, TAKEN_MS, takePermits } from './lua/counters.js'
import { callKey, semaphoreChannel } from './names.js'
import { everybody } from './wake-ups.js'

/** Redisson keeps permits in an `int`. */
const MOST_PERMITS = 2 ** 31 - 1
/** How long a call that may have been made is repeated, or taken back. */
const REPEAT_MS = 30_000

/** The options of each call for permits. */
export interface RedissonSemaphoreOptions {
  /** How many permits to take, all or none. Default: 1. */
  permits?: number | undefined
  /** How long to wait for them; 0 takes them only if they are free. No limit by default. */
  wait?: Duration | undefined
  /** Ends the wait with ABORTED when it aborts. */
  signal?: AbortSignal | undefined
}

const SEMAPHORE_OPTIONS: OptionNames<RedissonSemaphoreOptions> = { permits: true, wait: true, signal: true }

/** Permits of a semaphore. They have no lease: permits of a process that dies stay taken. */
export class RedissonPermits implements AsyncDisposable {
  /** The name of the semaphore. */
  readonly resource: string
  /** How many they are. */
  readonly permits: number
  readonly #release: () => Promise<unknown>
  #released: Promise<unknown> | undefined

  /** @internal */
  constructor(resource: string, permits: number, release: () => Promise<unknown>) {
    this.resource = resource
    this.permits = permits
    this.#release = release
  }

  /** Gives them back. Safe to call twice; after a rejection, another call tries again. */
  async release(): Promise<void> {
    const releasing = this.#released ?? this.#release()
    this.#released = releasing
    releasing.catch(() => {
      this.#released = undefined
    })
    await releasing
  }

  /** Lets `await using` release them. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}

/** A semaphore of Redisson. Made by `redissonLock(client).semaphore(name)`. */
export class RedissonSemaphore {
  /** The name that Redisson knows, too. */
  readonly name: string
  readonly #client: RedissonClient

  /** @internal */
  constructor(name: string, client: RedissonClient) {
    this.name = name
    this.#client = client
  }

  /** Sets how many permits there are, unless that was done before. Resolves with whether it did. */
  async trySetPermits(permits: number): Promise<boolean> {
    const { calls } = this.#client
    const args = [checkPermits(permits), semaphoreChannel(this.name)]
    return (await this.#answer(() => calls.run(setPermits, [this.name], ...args))) === '1'
  }

  /** How many permits are free. */
  async available(): Promise<number> {
    return Number(await this.#answer(() => this.#client.calls.run(readNumber, [this.name])))
  }

  /** Takes permits, and waits until they are free. Throws ACQUIRE_TIMEOUT when the wait is over. */
  async acquire(options: RedissonSemaphoreOptions = {}): Promise<RedissonPermits> {
    const taken = await this.#take(options)
    if (taken) return taken
    const message = `'${this.name}' had too few free permits within the wait`
    throw new HoldfastError('ACQUIRE_TIMEOUT', message, {
      resource: this.name,
      store: 'redis',
      retryable: true,
    })
  }

  /** Takes permits if they are free; resolves with null if they are not. */
  tryAcquire(options: Omit<RedissonSemaphoreOptions, 'wait'> = {}): Promise<RedissonPermits | null> {
    return this.#take({ ...options, wait: 0 })
  }

  /** Runs work with permits, and gives them back. */
  async run<T>(
    work: (permits: RedissonPermits) => T | PromiseLike<T>,
    options: RedissonSemaphoreOptions = {},
  ): Promise<T> {
    if (typeof work !== 'function') throw invalid('run() takes a function as its first argument', this.name)
    const taken = await this.acquire(options)
    try {
      return await work(taken)
    } finally {
      // Nothing else would ever give them back: permits have no lease.
      await taken.release().catch(() => this.#releaseLater(taken))
    }
  }

  /** Never rejects, and keeps nobody waiting. */
  #releaseLater(taken: RedissonPermits): void {
    const { env } = this.#client.calls
    const release = (): Promise<void> => taken.release()
    void untilAnswered(env, env.now() + REPEAT_MS, REPEAT_MS, release).catch(nothing)
  }

  async #take(options: RedissonSemaphoreOptions): Promise<RedissonPermits | null> {
    const { permits = 1, wait, signal } = checkOptions(options, SEMAPHORE_OPTIONS, '{ permits: 2 }')
    const claim = new PermitsClaim(this.#client, this.name, checkPermits(permits))
    const request = { waitMs: readWait(wait), leaseMs: REPEAT_MS, signal: checkSignal(signal) }
    const grant = await new Acquisition(claim, this.name, request, this.#client.calls.env).grant()
    return grant && new RedissonPermits(this.name, permits, () => this.#answer(() => claim.release()))
  }

  #answer<T>(call: () => Promise<T>): Promise<T> {
    const { env } = this.#client.calls
    return untilAnswered(env, env.now() + ANSWER_MS, ANSWER_MS, call)
  }
}

function checkPermits(permits: unknown): number {
  if (Number.isInteger(permits) && Number(permits) >= 1 && Number(permits) <= MOST_PERMITS)
    return Number(permits)
  throw invalid(`permits is ${String(permits)}, but must be a whole number from 1 on`)
}

class PermitsClaim implements PeerClaim {
  readonly hasPlace = false
  readonly #client: RedissonClient
  readonly #name: string
  readonly #permits: number
  readonly #keys: readonly string[]
  /** When the answer said that they are taken. */
  #takenAt = Infinity

  constructor(client: RedissonClient, name: string, permits: number) {
    this.#client = client
    this.#name = name
    this.#permits = permits
    this.#keys = [name, callKey(name, client.calls.env.id())]
  }

  async take(): Promise<TakeAnswer> {
    const { calls } = this.#client
    const isGranted = (await calls.run(takePermits, this.#keys, this.#permits)) === '1'
    if (isGranted) this.#takenAt = calls.env.now()
    return isGranted ? { isGranted, fence: null } : { isGranted, retryMs: this.#client.retryMs(-1) }
  }

  listen(pause: Pause): Promise<void> {
    return this.#client.wakeUps.listen(semaphoreChannel(this.#name), pause, everybody)
  }

  unlisten(pause: Pause): void {
    this.#client.wakeUps.unlisten(semaphoreChannel(this.#name), pause)
  }

  /** Permits have no lease. */
  async renew(): Promise<boolean> {
    return true
  }

  leave(): Promise<boolean> {
    return this.release()
  }

  async release(): Promise<boolean> {
    const { calls } = this.#client
    const isForgotten = calls.env.now() - this.#takenAt > TAKEN_MS * 0.9
    const args = [this.#permits, semaphoreChannel(this.#name), isForgotten ? 1 : 0]
    return (await calls.run(returnPermits, this.#keys, ...args)) === '1'
  }
}
