import { EventEmitter } from 'node:events'
import { invalid } from '../base/errors.js'
import { nothing } from '../base/nothing.js'
import type { Holdfast } from '../primitives/holdfast.js'
import { settled } from '../primitives/run.js'
import type { RedisClient } from '../stores/redis/index.js'
import { Core, isLocked, isUnanswered } from './core.js'
import { abortReason } from './dom-exception.js'
import { ExecutionError, ResourceLockedError } from './errors.js'
import type { HeldResources } from './held.js'
import { heldOf, Lock, setHeld } from './lock.js'
import {
  DEFAULT_SETTINGS,
  type HoldfastSettings,
  type Settings,
  type SomeSettings,
  settingsOf,
} from './settings.js'
import { type ExecutionResult, votesOf } from './votes.js'

/** The settings of a `Redlock`: those of redlock, and what only Holdfast has. */
export type RedlockSettings = SomeSettings & HoldfastSettings

/** The signal of `using`. */
export type RedlockAbortSignal = AbortSignal & {
  /** Why the lock was lost. Set when the signal aborts. */
  error?: Error
}

/** The work of `using`. */
export type Routine<T> = (signal: RedlockAbortSignal) => Promise<T>

const NO_QUORUM = 'The operation was unable to achieve a quorum during its retry window.'
/** `using` needs this much between two extensions. */
const LEAST_INTERVAL_MS = 100

/**
 * The API of the package redlock, version 5, on Holdfast. Waiting is a place in line in place of
 * retries, every lock has a fence, and its signal tells of a loss. See `docs/redlock.md`.
 *
 * @example
 * ```ts
 * import { Redis } from 'ioredis'
 * import Redlock from 'holdfast/redlock'
 *
 * const redlock = new Redlock([new Redis()], { retryCount: 10, retryDelay: 200 })
 * await redlock.using(['sender', 'recipient'], 5000, async (signal) => {
 *   if (signal.aborted) throw signal.error
 *   console.log('both are mine')
 * })
 * ```
 */
export class Redlock extends EventEmitter {
  /** The clients that it was given. */
  readonly clients: Set<RedisClient>
  /** The settings, completed with the defaults. */
  readonly settings: Settings
  readonly #core: Core

  /**
   * Takes one client (of a server, Sentinel or Cluster), or three, five or seven of independent
   * servers, of which a majority decides. The clients stay yours.
   */
  constructor(clients: Iterable<RedisClient>, settings: RedlockSettings = {}, scripts: object = {}) {
    super()
    // Without a listener, Node would throw the errors that are emitted.
    this.on('error', nothing)
    this.clients = new Set(clients)
    this.settings = settingsOf(settings, DEFAULT_SETTINGS)
    if (Object.keys(scripts).length > 0)
      throw invalid('Holdfast has Lua scripts of its own; remove the third argument of new Redlock()')
    this.#core = new Core(this.clients, settings)
  }

  /** The Holdfast client behind it: for other primitives, `inspect()` and `breakHold()`. */
  get locks(): Holdfast {
    return this.#core.locks
  }

  /**
   * Ends the connections, of Holdfast and of the clients. Waiting calls fail. Locks that are held
   * stay held until their time is over.
   */
  async quit(): Promise<void> {
    await this.#core.quit()
  }

  /**
   * Waits in line for all the resources, as long as the retry settings say. The lock ends after
   * `duration` milliseconds, unless you extend it. Rejects with an `ExecutionError`.
   *
   * @example
   * ```ts
   * import { Redis } from 'ioredis'
   * import Redlock from 'holdfast/redlock'
   *
   * const redlock = new Redlock([new Redis()])
   * let lock = await redlock.acquire(['a'], 5000)
   * try {
   *   lock = await lock.extend(5000)
   * } finally {
   *   await lock.release()
   * }
   * ```
   */
  async acquire(
    resources: string | readonly string[],
    duration: number,
    settings?: SomeSettings,
  ): Promise<Lock> {
    const { names, held } = await this.#take(resources, duration, this.#with(settings))
    held.letLapse()
    return this.#lockOf({ held, names, value: this.#core.newValue() }, duration, settings)
  }

  /**
   * Gives a lock back, so that the next in line gets it. Rejects with an `ExecutionError` if it had
   * ended before. `settings` change nothing here: nothing has to be retried.
   */
  async release(lock: Lock, _settings?: SomeSettings): Promise<ExecutionResult> {
    lock.expiration = 0
    return this.#release(lock.resources, heldOf(lock))
  }

  /**
   * Makes a lock last `duration` milliseconds from now, and returns another object for it. The old
   * one gets the expiration 0. Rejects with an `ExecutionError` if the lock has ended.
   */
  async extend(existing: Lock, duration: number, settings?: SomeSettings): Promise<Lock> {
    checkDuration(duration)
    if (this.#core.isExpired(existing)) throw new ExecutionError('Cannot extend an already-expired lock.', [])
    const held = heldOf(existing)
    const { resources: names, value } = existing
    await this.#attempt(names, () => held.extend(duration))
    existing.expiration = 0
    return this.#lockOf({ held, names, value }, duration, settings)
  }

  /**
   * Acquires the resources, runs the routine while extending the lock, and releases it. Resolves
   * with the value of the routine. If the lock is lost, `signal` aborts with `signal.error`, and
   * the call rejects with it, unless the routine itself fails.
   */
  using<T>(
    resources: string | readonly string[],
    duration: number,
    settings: SomeSettings,
    routine?: Routine<T>,
  ): Promise<T>
  using<T>(resources: string | readonly string[], duration: number, routine: Routine<T>): Promise<T>
  async using<T>(
    resources: string | readonly string[],
    duration: number,
    settingsOrRoutine: SomeSettings | Routine<T>,
    optionalRoutine?: Routine<T>,
  ): Promise<T> {
    checkDuration(duration)
    const isRoutine = typeof settingsOrRoutine === 'function'
    const settings = this.#with(isRoutine ? undefined : settingsOrRoutine)
    const routine = optionalRoutine ?? settingsOrRoutine
    if (typeof routine !== 'function') throw invalid('INVARIANT: routine is not a function.')
    const { automaticExtensionThreshold: threshold } = settings
    if (threshold > duration - LEAST_INTERVAL_MS)
      throw invalid(
        'A lock `duration` must be at least 100ms greater than the `automaticExtensionThreshold` setting.',
      )
    const { names, held } = await this.#take(resources, duration, settings)
    const endExtensions = held.keepAbove(threshold, duration)
    const signal = this.#signalOf(held, names)
    const outcome = await settled(() => routine(signal))
    endExtensions()
    // The listeners of `error` know of a loss already.
    const release = await settled<unknown>(() => (signal.error ? held.release() : this.#release(names, held)))
    if ('error' in outcome) throw outcome.error
    if (signal.error) throw signal.error
    if ('error' in release) throw release.error
    return outcome.value
  }

  /** Takes the resources. They are renewed from now on. */
  async #take(
    resources: string | readonly string[],
    duration: number,
    settings: Settings,
  ): Promise<{ names: string[]; held: HeldResources }> {
    checkDuration(duration)
    const names = typeof resources === 'string' ? [resources] : [...resources]
    const held = await this.#attempt(names, () => this.#core.acquire(names, duration, settings))
    return { names, held }
  }

  #lockOf(
    { held, names, value }: { held: HeldResources; names: string[]; value: string },
    duration: number,
    settings: SomeSettings | undefined,
  ): Lock {
    const expiration = this.#core.expirationOf(held, duration, this.#with(settings))
    const lock = new Lock(this, names, value, votesOf(this.clients, null), expiration)
    setHeld(lock, held)
    return lock
  }

  #with(settings: SomeSettings | undefined): Settings {
    return settingsOf(settings, this.settings)
  }

  async #release(names: readonly string[], held: HeldResources): Promise<ExecutionResult> {
    const count = await this.#attempt(names, () => held.release())
    if (count < held.size) throw this.#failure(names, undefined, count)
    return { attempts: votesOf(this.clients, null) }
  }

  async #attempt<T>(names: readonly string[], operation: () => Promise<T>): Promise<T> {
    const outcome = await settled(operation)
    if ('error' in outcome) throw this.#failure(names, outcome.error, 0)
    return outcome.value
  }

  /** Also tells the listeners of `error`. Mistakes of the caller are passed on as they are. */
  #failure(names: readonly string[], cause: unknown, count: number): unknown {
    if (cause !== undefined && !isLocked(cause) && !isUnanswered(cause)) return cause
    const reason = reasonOf(names, cause, count)
    this.emit('error', reason)
    return this.#executionError(reason, cause)
  }

  #executionError(reason: Error, cause: unknown = reason): ExecutionError {
    return new ExecutionError(NO_QUORUM, votesOf(this.clients, reason), { cause })
  }

  #signalOf(held: HeldResources, names: readonly string[]): RedlockAbortSignal {
    const controller = new AbortController()
    const signal: RedlockAbortSignal = controller.signal
    const onLoss = (): void => {
      const cause: unknown = held.signal.reason
      const reason = reasonOf(names, cause, 0)
      signal.error = this.#executionError(reason, cause)
      // The routine first: a listener may throw.
      controller.abort(abortReason(signal.error))
      this.emit('error', reason)
    }
    if (held.signal.aborted) onLoss()
    else held.signal.addEventListener('abort', onLoss, { once: true })
    return signal
  }
}

/** What the listeners of `error` get. */
function reasonOf(names: readonly string[], cause: unknown, count: number): Error {
  if (isUnanswered(cause)) return cause
  const message = `The operation was applied to: ${count} of the ${names.length} requested resources.`
  return new ResourceLockedError(message, { cause })
}

function checkDuration(duration: number): void {
  if (Math.floor(duration) !== duration) throw invalid('Duration must be an integer value in milliseconds.')
}
