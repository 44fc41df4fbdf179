/// <reference lib="esnext.disposable" preserve="true" />
import { invalid } from '../base/errors.js'
import type { HeldResources } from './held.js'
import type { Redlock } from './redlock.js'
import type { ExecutionResult, ExecutionStats } from './votes.js'

/** What stands behind each lock. Not a member: redlock's locks are made of these members only. */
const heldBy = new WeakMap<object, HeldResources>()

export function setHeld(lock: object, held: HeldResources): void {
  heldBy.set(lock, held)
}

export function heldOf(lock: object): HeldResources {
  const held = heldBy.get(lock)
  if (held) return held
  throw invalid(
    'This lock was not acquired here. To hand a lock over to another process, use hold.export() and adopt() of Holdfast',
  )
}

/** The fence of a lock of one resource. */
export function fenceOf(lock: object): number {
  const { fences } = heldOf(lock)
  const [fence] = fences.values()
  if (fence !== undefined && fences.size === 1) return fence
  throw invalid(`This lock has ${fences.size} resources, each with a fence of its own: use lock.fences`)
}

/**
 * A lock, made by `acquire` and `extend`. It ends with its duration: at `expiration`.
 *
 * @example
 * ```ts
 * import { Redis } from 'ioredis'
 * import Redlock from 'holdfast/redlock'
 *
 * const redlock = new Redlock([new Redis()])
 * await using lock = await redlock.acquire(['order:42'], 5000)
 * console.log('mine until', new Date(lock.expiration), 'with fence', lock.fence)
 * ```
 */
export class Lock implements AsyncDisposable {
  /** The `Redlock` that made it. */
  readonly redlock: Redlock
  /** What it locks. */
  readonly resources: string[]
  /** A random text, unique to the lock; `extend` keeps it. */
  readonly value: string
  /** What the servers said. */
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>
  /** Until when you may rely on the lock, as `Date.now()` counts. 0: released or replaced. */
  expiration: number

  /** Made by `acquire` and `extend`. */
  constructor(
    redlock: Redlock,
    resources: string[],
    value: string,
    attempts: ReadonlyArray<Promise<ExecutionStats>>,
    expiration: number,
  ) {
    this.redlock = redlock
    this.resources = resources
    this.value = value
    this.attempts = attempts
    this.expiration = expiration
  }

  /**
   * The number of this lock, greater than that of every earlier lock of the resource. See
   * `docs/fencing.md`. For several resources, see `fences`.
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

  /** Gives the lock back. Rejects with an `ExecutionError` if it had ended before. */
  async release(): Promise<ExecutionResult> {
    return this.redlock.release(this)
  }

  /** A lock in place of this one, that lasts `duration` milliseconds from now. */
  async extend(duration: number): Promise<Lock> {
    return this.redlock.extend(this, duration)
  }

  /** For `await using`: releases, unless that was done before. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!heldOf(this).isReleased) await this.release()
  }
}
