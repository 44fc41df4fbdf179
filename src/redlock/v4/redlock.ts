import { EventEmitter } from 'node:events'
import { invalid } from '../../base/errors.js'
import { nothing } from '../../base/nothing.js'
import type { Holdfast } from '../../primitives/holdfast.js'
import type { RedisClient } from '../../stores/redis/index.js'
import { Core, isLocked, isUnanswered } from '../core.js'
import { heldOf, setHeld } from '../lock.js'
import {
  DEFAULT_SETTINGS,
  type HoldfastSettings,
  type Settings,
  type SomeSettings,
  settingsOf,
} from '../settings.js'
import { type Callback, withCallback } from './callback.js'
import { Disposer } from './disposer.js'
import { LegacyLock } from './lock.js'
import { LockError } from './lock-error.js'

/** The options of a `Redlock` of version 4. */
export type LegacyOptions = Omit<SomeSettings, 'automaticExtensionThreshold'> & HoldfastSettings

const SCRIPTS = ['lockScript', 'unlockScript', 'extendScript']

/**
 * The API of the package redlock, version 4, on Holdfast. Waiting is a place in line in place of
 * retries, every lock has a fence, and its signal tells of a loss. See `docs/redlock.md`.
 *
 * @example
 * ```ts
 * import { Redis } from 'ioredis'
 * import Redlock from 'holdfast/redlock/v4'
 *
 * const redlock = new Redlock([new Redis()])
 * redlock.lock('account:7', 1000, (error, lock) => {
 *   if (error) return console.error(error)
 *   lock?.unlock((failure) => failure && console.error(failure))
 * })
 * ```
 */
export class LegacyRedlock extends EventEmitter {
  /** The class of its errors. */
  static readonly LockError = LockError
  /** The class of its locks. */
  static readonly Lock = LegacyLock

  /** The clients that it was given. */
  readonly servers: readonly RedisClient[]
  /** How much of a duration is taken off for the drift of clocks. At least 0.01, the default. */
  readonly driftFactor: number
  /**
   * With `retryDelay` and `retryJitter`, how long to wait in line: `retryCount × (retryDelay +
   * retryJitter)`. 0: do not wait. -1: wait for ever. Default 10.
   */
  readonly retryCount: number
  /** See `retryCount`. In milliseconds, 200 by default. */
  readonly retryDelay: number
  /** See `retryCount`. In milliseconds, 100 by default. */
  readonly retryJitter: number
  readonly #core: Core

  /**
   * Takes one client (of a server, Sentinel or Cluster), or three, five or seven of independent
   * servers, of which a majority decides. The clients stay yours.
   */
  constructor(clients: Iterable<RedisClient>, options: LegacyOptions = {}) {
    super()
    this.servers = [...clients]
    if (SCRIPTS.some((name) => name in options))
      throw invalid(`Holdfast has Lua scripts of its own; remove the options ${SCRIPTS.join(', ')}`)
    const settings = settingsOf(options, DEFAULT_SETTINGS)
    this.driftFactor = settings.driftFactor
    this.retryCount = settings.retryCount
    this.retryDelay = settings.retryDelay
    this.retryJitter = settings.retryJitter
    this.#core = new Core(new Set(this.servers), options)
  }

  /** The Holdfast client behind it: for other primitives, `inspect()` and `breakHold()`. */
  get locks(): Holdfast {
    return this.#core.locks
  }

  /**
   * Ends the connections, of Holdfast and of the clients. Waiting calls fail. Locks that are held
   * stay held until their time is over.
   */
  quit(callback?: Callback<unknown[]>): Promise<unknown[]> {
    return withCallback(this.#core.quit(), callback)
  }

  /**
   * Waits in line for the resource, or for all of several, as long as the retry options say. The
   * lock ends after `ttl` milliseconds, unless you extend it. Fails with a `LockError`.
   */
  lock(
    resource: string | readonly string[],
    ttl: number,
    callback?: Callback<LegacyLock>,
  ): Promise<LegacyLock> {
    return withCallback(this.#lock(resource, ttl, {}), callback)
  }

  /** The same as `lock`. */
  acquire(
    resource: string | readonly string[],
    ttl: number,
    callback?: Callback<LegacyLock>,
  ): Promise<LegacyLock> {
    return this.lock(resource, ttl, callback)
  }

  /** As `lock`, with other options for this call. */
  lockWithOptions(
    resource: string | readonly string[],
    ttl: number,
    options: LegacyOptions,
    callback?: Callback<LegacyLock>,
  ): Promise<LegacyLock> {
    return withCallback(this.#lock(resource, ttl, options), callback)
  }

  /** The same as `lockWithOptions`. */
  acquireWithOptions(
    resource: string | readonly string[],
    ttl: number,
    options: LegacyOptions,
    callback?: Callback<LegacyLock>,
  ): Promise<LegacyLock> {
    return this.lockWithOptions(resource, ttl, options, callback)
  }

  /**
   * For `using` of Bluebird: locks, and unlocks when the work is done. `onUnlockError` is told if
   * that fails; without it, nobody is.
   */
  disposer(
    resource: string | readonly string[],
    ttl: number,
    onUnlockError: (error: unknown) => void = nothing,
  ): Disposer<LegacyLock> {
    return new Disposer(this.lock(resource, ttl), (lock) => lock.unlock().catch(onUnlockError))
  }

  /** Gives a lock back. Fails with a `LockError` if it had ended before. */
  unlock(lock: LegacyLock, callback?: Callback<void>): Promise<void> {
    lock.expiration = 0
    return withCallback(this.#unlock(lock), callback)
  }

  /** The same as `unlock`. */
  release(lock: LegacyLock, callback?: Callback<void>): Promise<void> {
    return this.unlock(lock, callback)
  }

  /** Makes a lock last `ttl` milliseconds from now. Fails with a `LockError` if it has ended. */
  extend(lock: LegacyLock, ttl: number, callback?: Callback<LegacyLock>): Promise<LegacyLock> {
    return withCallback(this.#extend(lock, ttl), callback)
  }

  get #settings(): Settings {
    const { driftFactor, retryCount, retryDelay, retryJitter } = this
    return { ...DEFAULT_SETTINGS, driftFactor, retryCount, retryDelay, retryJitter }
  }

  async #lock(
    resource: string | readonly string[],
    ttl: number,
    options: LegacyOptions,
  ): Promise<LegacyLock> {
    const names = typeof resource === 'string' ? [resource] : [...resource]
    const settings = settingsOf(options, this.#settings)
    const { retryCount } = settings
    try {
      const held = await this.#core.acquire(names, ttl, settings)
      held.letLapse()
      const expiration = this.#core.expirationOf(held, ttl, settings)
      const lock = new LegacyLock(this, names, this.#core.newValue(), expiration, 1, retryCount - 1)
      setHeld(lock, held)
      return lock
    } catch (error) {
      throw this.#failure(error, exceeded(retryCount, names), 1)
    }
  }

  async #unlock(lock: LegacyLock): Promise<void> {
    const held = heldOf(lock)
    const message = `Unable to fully release the lock on resource "${lock.resource}".`
    let count: number
    try {
      count = await held.release()
    } catch (error) {
      throw this.#failure(error, message)
    }
    if (count < held.size) throw new LockError(message)
  }

  async #extend(lock: LegacyLock, ttl: number): Promise<LegacyLock> {
    if (this.#core.isExpired(lock)) {
      const message = `Cannot extend lock on resource "${lock.resource}" because the lock has already expired.`
      throw new LockError(message, 0)
    }
    const held = heldOf(lock)
    try {
      await held.extend(ttl)
    } catch (error) {
      throw this.#failure(error, exceeded(this.retryCount, lock.resource), 1)
    }
    lock.expiration = this.#core.expirationOf(held, ttl, this.#settings)
    return lock
  }

  /** Also tells the listeners of `clientError`. Mistakes of the caller are passed on. */
  #failure(cause: unknown, message: string, attempts?: number): unknown {
    if (isUnanswered(cause)) this.emit('clientError', cause)
    else if (!isLocked(cause)) return cause
    return new LockError(message, attempts, { cause })
  }
}

function exceeded(retryCount: number, resource: readonly string[]): string {
  return `Exceeded ${retryCount} attempts to lock the resource "${resource}".`
}
