import { HoldfastError, invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import type { OptionNames } from '../base/options.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type { Hold } from './hold.js'
import { Lock } from './lock.js'
import {
  type AcquireOptions,
  CALL_OPTIONS,
  checkCounting,
  type LockKind,
  type TryOptions,
} from './options.js'
import type { LockContext } from './reentry.js'
import { type HolderView, resourceView } from './views.js'

/** The options of `acquire` and `run` of a semaphore. */
export interface SemaphoreAcquireOptions extends AcquireOptions {
  /** How many permits to take: all of them or none. Default 1. */
  permits?: number | undefined
}

/** The options of `tryAcquire` of a semaphore, which never waits. */
export interface SemaphoreTryOptions extends TryOptions {
  /** How many permits to take: all of them or none. Default 1. */
  permits?: number | undefined
}

const SEMAPHORE_CALL_OPTIONS: {
  readonly acquire: OptionNames<SemaphoreAcquireOptions>
  readonly tryAcquire: OptionNames<SemaphoreTryOptions>
} = {
  acquire: { permits: true, ...CALL_OPTIONS.acquire },
  tryAcquire: { permits: true, ...CALL_OPTIONS.tryAcquire },
}

/**
 * A limited number of permits over all processes, in order of arrival. A large request at the head
 * makes later small ones wait. The permits of a holder that dies come back when its lease ends. Not
 * re-entrant: each acquisition takes its own permits.
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
    checkCounting(context.engine, resource)
    const kind: LockKind = { resource, permits: 1, capacity, isReentrant: false }
    super(context, kind)
    this.#context = context
    this.#kind = kind
  }

  /** The number of permits as declared here; `resize` may have changed it since. */
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
   * Changes the number of permits for all processes, even for those that still declare the old
   * number. Additional permits are given out at once. A reduction takes effect as holders leave: no
   * hold is interrupted. The number is kept until you change it again.
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
    await resizeSemaphore(this.#context, this.name, capacity, this.#kind.capacity)
  }

  /**
   * How many permits are free now; waiters may be about to take them. Show it to people, do not
   * decide by it.
   */
  async available(): Promise<number> {
    const line = await this.#context.operator.line(this.name)
    if (!line) return this.#kind.capacity
    const taken = line.claims.reduce((sum, claim) => sum + (claim.fence === null ? 0 : claim.permits), 0)
    // After a reduction, holders may have more permits than there are.
    return Math.max(0, line.capacity - taken)
  }

  /** The present holders, and how many permits each has. */
  async holders(): Promise<HolderView[]> {
    const { engine, operator } = this.#context
    const line = await operator.line(this.name)
    return line ? resourceView(line, engine.env).holders : []
  }

  /** @internal */
  protected override get optionNames(): typeof SEMAPHORE_CALL_OPTIONS {
    return SEMAPHORE_CALL_OPTIONS
  }

  /** @internal */
  protected override kindFor({ permits = 1 }: SemaphoreAcquireOptions): LockKind {
    const { capacity } = this.#kind
    if (!Number.isSafeInteger(permits) || permits < 1)
      throw invalid('permits must be a whole number of at least 1', this.name)
    if (permits > capacity)
      throw invalid(
        `'${this.name}' has ${capacity} permits, so ${permits} can never be acquired; ask for fewer, or declare and resize it larger`,
        this.name,
      )
    return { ...this.#kind, permits }
  }
}

/** Without `declared`: the store knows what claims declare, unless nobody uses the semaphore. */
export async function resizeSemaphore(
  { operator }: LockContext,
  resource: string,
  capacity: number,
  declared?: number,
): Promise<void> {
  checkCapacity(capacity, resource)
  const line = await operator.line(resource)
  // The store would save this capacity, and refuse all that use the name as a lock.
  if (line?.capacity === EXCLUSIVE) throw inUseAsLock(resource)
  const known = declared ?? line?.declared ?? line?.capacity
  if (known === undefined) throw notInUse(resource)
  await operator.resize(resource, known, capacity)
}

function notInUse(resource: string): HoldfastError {
  const message = `Nobody uses a semaphore '${resource}', so the capacity that its users declare is not known; use semaphore('${resource}', capacity).resize()`
  return new HoldfastError('INVALID_ARGUMENT', message, { resource })
}

function inUseAsLock(resource: string): HoldfastError {
  const message = `'${resource}' is in use as a lock, not as a semaphore; give the semaphore another name`
  return new HoldfastError('CAPACITY_MISMATCH', message, { resource })
}

function checkCapacity(capacity: unknown, resource: string): void {
  if (Number.isSafeInteger(capacity) && (capacity as number) >= 1 && (capacity as number) < EXCLUSIVE) return
  throw invalid(`The capacity of a semaphore must be a whole number from 1 to ${EXCLUSIVE - 1}`, resource)
}
