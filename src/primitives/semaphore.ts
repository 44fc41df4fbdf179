import { HoldfastError, invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import type { OptionNames } from '../base/options.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type { Hold } from './hold.js'
import { Lock } from './lock.js'
import { type AcquireOptions, EACH_TIME, type LockKind, type TryOptions } from './options.js'
import type { LockContext } from './reentry.js'
import { type HolderView, resourceView } from './views.js'

/** What `acquire` and `run` of a semaphore can be told. */
export interface SemaphoreAcquireOptions extends AcquireOptions {
  /** How many permits to take: all of them or none. Default 1. */
  permits?: number | undefined
}

/** What `tryAcquire` of a semaphore can be told: it never waits. */
export interface SemaphoreTryOptions extends TryOptions {
  /** How many permits to take: all of them or none. Default 1. */
  permits?: number | undefined
}

const EACH_TIME_WITH_PERMITS: {
  readonly acquire: OptionNames<SemaphoreAcquireOptions>
  readonly tryAcquire: OptionNames<SemaphoreTryOptions>
} = {
  acquire: { permits: true, ...EACH_TIME.acquire },
  tryAcquire: { permits: true, ...EACH_TIME.tryAcquire },
}

/**
 * At most so many at once, over all processes, in order of arrival; a large claim at the head makes later small ones wait. The
 * permits of a holder that dies come back when its lease is over. Not re-entrant: each acquisition takes permits of its own.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { memory } from 'holdfast/memory'
 *
 * const gpus = new Holdfast(memory()).semaphore('gpu', 4)
 * await gpus.run(async () => console.log('on two of four GPUs'), { permits: 2, wait: '1m' })
 * ```
 */
export class Semaphore extends Lock {
  readonly #context: LockContext
  readonly #kind: LockKind

  /** Made by `locks.semaphore(name, capacity)`. */
  constructor(context: LockContext, name: string, capacity: number) {
    const resource = checkName(name, 'The name of a semaphore')
    checkCapacity(capacity, resource)
    const kind: LockKind = { resource, permits: 1, capacity, isReentrant: false }
    super(context, kind)
    this.#context = context
    this.#kind = kind
  }

  /** How many permits there are, as declared here; `resize` may have changed it since. */
  get capacity(): number {
    return this.#kind.capacity
  }

  /** Like `run` of every lock, with `permits`. */
  override run<T>(
    work: (hold: Hold) => T | PromiseLike<T>,
    options: SemaphoreAcquireOptions = {},
  ): Promise<T> {
    return super.run(work, options)
  }

  /** Like `acquire` of every lock, with `permits`. */
  override acquire(options: SemaphoreAcquireOptions = {}): Promise<Hold> {
    return super.acquire(options)
  }

  /** Like `tryAcquire` of every lock, with `permits`. */
  override tryAcquire(options: SemaphoreTryOptions = {}): Promise<Hold | null> {
    return super.tryAcquire(options)
  }

  /**
   * Changes how many permits there are, for everybody: also for those who still declare the old number. More are given out at
   * once; fewer take effect as holders leave, and nobody is interrupted. Remembered until it is changed again.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const gpus = new Holdfast(memory()).semaphore('gpu', 4)
   * await gpus.resize(6)
   * console.log(await gpus.available()) // 6
   * ```
   */
  async resize(capacity: number): Promise<void> {
    checkCapacity(capacity, this.name)
    const line = await this.#context.engine.operator.line(this.name)
    // The store would pin the number on it, and lock those out who use it as a lock.
    if (line?.capacity === EXCLUSIVE) throw inUseAsLock(this.name)
    await this.#context.engine.operator.resize(this.name, this.#kind.capacity, capacity)
  }

  /** How many permits nobody holds now; those who wait may be about to take them. For people, not for decisions. */
  async available(): Promise<number> {
    const line = await this.#context.engine.operator.line(this.name)
    if (!line) return this.#kind.capacity
    const taken = line.claims.reduce((sum, claim) => sum + (claim.fence === null ? 0 : claim.permits), 0)
    // After a resize to fewer, those who hold may have more than there are.
    return Math.max(0, line.capacity - taken)
  }

  /** Who holds permits now, and how many. */
  async holders(): Promise<HolderView[]> {
    const { engine } = this.#context
    const line = await engine.operator.line(this.name)
    return line ? resourceView(line, engine.env).holders : []
  }

  /** @internal */
  protected override get optionNames(): typeof EACH_TIME_WITH_PERMITS {
    return EACH_TIME_WITH_PERMITS
  }

  /** @internal */
  protected override kindFor({ permits = 1 }: SemaphoreAcquireOptions): LockKind {
    const { capacity } = this.#kind
    if (!Number.isSafeInteger(permits) || permits < 1)
      throw invalid('permits must be a whole number of at least 1', this.name)
    if (permits > capacity)
      throw invalid(
        `${permits} permits of '${this.name}' can never be had, there are ${capacity}; ask for fewer, or declare and resize it larger`,
        this.name,
      )
    return { ...this.#kind, permits }
  }
}

function inUseAsLock(resource: string): HoldfastError {
  const message = `'${resource}' is in use as a lock, not as a semaphore; give the semaphore another name`
  return new HoldfastError('CAPACITY_MISMATCH', message, { resource })
}

function checkCapacity(capacity: unknown, resource: string): void {
  if (Number.isSafeInteger(capacity) && (capacity as number) >= 1 && (capacity as number) < EXCLUSIVE) return
  throw invalid(`The capacity of a semaphore must be a whole number from 1 to ${EXCLUSIVE - 1}`, resource)
}
