import { type Duration, toMs } from '../base/duration.js'
import { HoldfastError, invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import { checkOptions, type OptionNames } from '../base/options.js'
import { limits } from './options.js'
import type { LockContext } from './reentry.js'

/** The options of a latch. */
export interface LatchOptions {
  /**
   * How long the count is kept after its last change; then the latch starts anew. Default `'30d'`.
   */
  retention?: Duration | undefined
}

/** The options of a wait without a hold. */
export interface WaitOptions {
  /**
   * How long to wait. Default: forever. With `0` the call does not wait: it throws ACQUIRE_TIMEOUT
   * unless the latch is open, or all parties of the barrier are there.
   */
  wait?: Duration | undefined
  /** Ends the wait with ABORTED when aborted. */
  signal?: AbortSignal | undefined
}

const LATCH_OPTIONS: OptionNames<LatchOptions> = { retention: true }
export const WAIT_OPTIONS: OptionNames<WaitOptions> = { wait: true, signal: true }

/** The state of a latch in the store. */
interface LatchState {
  readonly total: number
  readonly count: number
  /** The ids of the latest changes. */
  readonly recent: readonly string[]
}

/**
 * How many changes are remembered. A client whose answer got lost finds its own id here, and does
 * not count twice.
 */
const REMEMBERED = 64

/**
 * A count that processes wait for until it is zero. No process owns it: a count stays when the
 * process that made it ends.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { memory } from 'holdfast/memory'
 *
 * const ready = new Holdfast(memory()).latch('ready', 2)
 * void Promise.all([ready.countDown(), ready.countDown()])
 * await ready.wait({ wait: '1m' })
 * ```
 */
export class Latch {
  readonly #context: LockContext
  readonly #key: string
  readonly #retentionMs: number
  /** The name of the latch. */
  readonly name: string
  /** The number it starts to count from. */
  readonly total: number

  /** Made by `locks.latch(name, total)`. */
  constructor(context: LockContext, name: string, total: number, options: LatchOptions = {}) {
    this.#context = context
    this.name = checkName(name, 'The name of a latch')
    this.#key = checkName(`latch:${name}`, 'The name of a latch')
    if (!Number.isSafeInteger(total) || total < 0)
      throw invalid('The count of a latch must be a whole number of at least 0', name)
    this.total = total
    const { retention = '30d' } = checkOptions(options, LATCH_OPTIONS, "{ retention: '1d' }")
    this.#retentionMs = toMs(retention, { name: 'retention', minMs: 1 })
  }

  /** How many counts are still missing. */
  async count(): Promise<number> {
    return this.#parse(await this.#context.engine.states.read(this.#key)).count
  }

  /** Counts down by one, and returns how many counts are still missing. At zero it does nothing. */
  async countDown(): Promise<number> {
    const { engine } = this.#context
    const id = engine.newId()
    const after = await engine.states.update(this.#key, (value) => {
      const { total, count, recent } = this.#parse(value)
      if (count === 0 || recent.includes(id)) return null
      return this.#written({ total, count: count - 1, recent: [id, ...recent].slice(0, REMEMBERED) })
    })
    return this.#parse(after).count
  }

  /**
   * Waits until the count is zero; returns at once if it is. Throws ACQUIRE_TIMEOUT when the wait
   * is over, ABORTED when the signal aborts.
   */
  async wait(options: WaitOptions = {}): Promise<void> {
    const isOpen = (value: string | null): boolean => this.#parse(value).count === 0
    const what = { kind: 'latch', name: this.name }
    await this.#context.engine.states.until(this.#key, isOpen, limits(options, WAIT_OPTIONS), what)
  }

  /** Restarts the count for all processes, even if another number was declared before. */
  async reset(): Promise<void> {
    const { engine } = this.#context
    const id = engine.newId()
    const fresh = { total: this.total, count: this.total, recent: [id] }
    await engine.states.update(this.#key, (value) => {
      const isDone = value !== null && (JSON.parse(value) as LatchState).recent.includes(id)
      return isDone ? null : this.#written(fresh)
    })
  }

  #written(state: LatchState): { value: string; retentionMs: number } {
    return { value: JSON.stringify(state), retentionMs: this.#retentionMs }
  }

  #parse(value: string | null): LatchState {
    if (value === null) return { total: this.total, count: this.total, recent: [] }
    const state = JSON.parse(value) as LatchState
    if (state.total === this.total) return state
    const message = `The latch '${this.name}' counts from ${state.total}, not from ${this.total}; use the same number everywhere, or reset() it`
    throw new HoldfastError('CAPACITY_MISMATCH', message, { resource: this.name })
  }
}
