/// <reference lib="esnext.disposable" preserve="true" />
import { fenceOf, heldOf } from '../lock.js'
import type { Callback } from './callback.js'
import type { LegacyRedlock } from './redlock.js'

/** A lock of version 4: `extend` changes it, and returns the same object. */
export class LegacyLock implements AsyncDisposable {
  /** The `Redlock` that made it. */
  readonly redlock: LegacyRedlock
  /** What it locks. */
  readonly resource: string[]
  /** A random text, unique to the lock. */
  value: string
  /** Until when you may rely on the lock, as `Date.now()` counts. 0: released. */
  expiration: number
  /** How many attempts were made: always 1. */
  readonly attempts: number
  /** How many attempts the settings would have allowed beyond that. */
  readonly attemptsRemaining: number

  /** Made by `lock`. */
  constructor(
    redlock: LegacyRedlock,
    resource: string[],
    value: string,
    expiration: number,
    attempts: number,
    attemptsRemaining: number,
  ) {
    this.redlock = redlock
    this.resource = resource
    this.value = value
    this.expiration = expiration
    this.attempts = attempts
    this.attemptsRemaining = attemptsRemaining
  }

  /**
   * The number of this lock, greater than that of every earlier lock of the resource. For several
   * resources, see `fences`.
   */
  get fence(): number {
    return fenceOf(this)
  }

  /** The fence of each resource. */
  get fences(): ReadonlyMap<string, number> {
    return heldOf(this).fences
  }

  /** Aborts when the lock is lost, or its time is over. A release does not abort it. */
  get signal(): AbortSignal {
    return heldOf(this).signal
  }

  /** Gives the lock back. Fails with a `LockError` if it had ended before. */
  unlock(callback?: Callback<void>): Promise<void> {
    return this.redlock.unlock(this, callback)
  }

  /** Makes the lock last `ttl` milliseconds from now. */
  extend(ttl: number, callback?: Callback<LegacyLock>): Promise<LegacyLock> {
    return this.redlock.extend(this, ttl, callback)
  }

  /** For `await using`: releases, unless that was done before. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!heldOf(this).isReleased) await this.unlock()
  }
}
