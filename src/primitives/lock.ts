import { invalid } from '../base/errors.js'
import type { Entry } from '../engine/request.js'
import type { Hold } from './hold.js'
import { isAcquireTimeout, timeoutWithHolder } from './holder.js'
import {
  type AcquireOptions,
  CALL_OPTIONS,
  type LockKind,
  limits,
  type TryOptions,
  withDefaults,
} from './options.js'
import { enter, type LockContext } from './reentry.js'
import { holdOf, runInside } from './run.js'

/** What all locks share: they differ in what they ask for, not in how. */
export class Lock {
  readonly #context: LockContext
  readonly #kind: LockKind

  constructor(context: LockContext, kind: LockKind) {
    this.#context = context
    this.#kind = kind
  }

  /** The name of what is locked. */
  get name(): string {
    return this.#kind.resource
  }

  /**
   * Waits for the lock, runs `work` while holding it, and always releases it. It passes on the
   * value or the error of `work`. If the hold was lost before `work` settled, it rejects with
   * HOLD_LOST, unless `work` itself failed. Inside `work` you can enter the same lock again without
   * waiting.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * const total = await locks.mutex('order:42').run(
   *   async (hold) => {
   *     hold.signal.throwIfAborted()
   *     return 42
   *   },
   *   { wait: '5s', lease: '30s' },
   * )
   * console.log(total)
   * ```
   */
  run<T>(work: (hold: Hold) => T | PromiseLike<T>, options: AcquireOptions = {}): Promise<T> {
    if (typeof work !== 'function')
      return Promise.reject(invalid('run() takes a function as its first argument', this.name))
    const inside = ([hold]: readonly Hold[]): T | PromiseLike<T> => work(hold as Hold)
    return this.#enter(options, (entry) =>
      runInside(this.#context, { entries: [entry], work: inside, areOrdered: false }),
    )
  }

  /**
   * Waits for the lock and returns the hold. Throws ACQUIRE_TIMEOUT when the wait is over, ABORTED
   * when the signal aborts.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * await using hold = await locks.mutex('order:42').acquire({ wait: '5s' })
   * console.log(hold.fence)
   * ```
   */
  acquire(options: AcquireOptions = {}): Promise<Hold> {
    return this.#enter(options, (entry) => holdOf(this.#context, entry))
  }

  /**
   * Returns the hold if the lock is free, otherwise null. It never overtakes waiters.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * const hold = await locks.mutex('nightly').tryAcquire()
   * if (hold) await hold.release()
   * else console.log('somebody else does it')
   * ```
   */
  async tryAcquire(options: TryOptions = {}): Promise<Hold | null> {
    const wait = { ...limits(options, this.optionNames.tryAcquire), waitMs: 0 }
    const asked = withDefaults(options, this.#context.defaults)
    const found = await enter(this.#context, this.kindFor(asked), asked, wait)
    return found && holdOf(this.#context, found)
  }

  /** Not async: where the store answers at once, the promise of a `run` is the only one. */
  #enter<T>(options: AcquireOptions, use: (entry: Entry) => T | Promise<T>): Promise<T> {
    try {
      const { defaults } = this.#context
      const wait = limits(options, this.optionNames.acquire, defaults)
      const asked = withDefaults(options, defaults)
      const found = enter(this.#context, this.kindFor(asked), asked, wait)
      if (!found || found instanceof Promise) return this.#waitFor(found, wait.waitMs, use)
      return Promise.resolve(use(found))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #waitFor<T>(
    finding: null | Promise<Entry | null>,
    waitMs: number,
    use: (entry: Entry) => T | Promise<T>,
  ): Promise<T> {
    let found: Entry | null = null
    try {
      found = await finding
    } catch (error) {
      if (!isAcquireTimeout(error)) throw error
    }
    if (found) return use(found)
    throw await timeoutWithHolder(this.#context, this.name, waitMs)
  }

  /**
   * Whether the lock is held now. By the time you read the answer it may have changed: show it to
   * people, do not decide by it.
   */
  async isLocked(): Promise<boolean> {
    const line = await this.#context.operator.line(this.name)
    return line?.claims.some((claim) => claim.fence !== null) ?? false
  }

  /** @internal The options of a call. */
  protected get optionNames(): typeof CALL_OPTIONS {
    return CALL_OPTIONS
  }

  /** @internal What to ask the store for with these options. */
  protected kindFor(_options: AcquireOptions): LockKind {
    return this.#kind
  }
}
