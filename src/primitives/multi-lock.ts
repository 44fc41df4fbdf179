import { formatMs } from '../base/duration.js'
import { HoldfastError, invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import { EXCLUSIVE } from '../contract/constants.js'
import { HEALTHY_MS } from '../engine/calls.js'
import { heldFrames } from '../engine/flow.js'
import { type Limits, limitsLeft } from '../engine/limits.js'
import { holderOf } from './holder.js'
import { MultiHold } from './multi-hold.js'
import {
  type AcquireOptions,
  EACH_TIME,
  type HoldOptions,
  limits,
  type TryOptions,
  withDefaults,
} from './options.js'
import { type Entered, enter, type LockContext, leave } from './reentry.js'
import { holdOf, runInside } from './run.js'

const NAMED_IN_ERRORS = 3

/**
 * Several mutexes, all or none. They are taken in the order of their names, so that two such locks never wait for each other,
 * however their names overlap. Names that the flow holds already are entered again; a name that sorts before one of those is
 * refused, since waiting for it could be a deadlock.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { memory } from 'holdfast/memory'
 *
 * const locks = new Holdfast(memory())
 * await locks.all(['account:7', 'account:9']).run(
 *   async (hold) => console.log('both are mine', hold.fences.get('account:7')),
 *   { wait: '5s' },
 * )
 * ```
 */
export class MultiLock {
  readonly #context: LockContext
  /** Each once, in the order in which they are taken. */
  readonly names: readonly string[]

  /** Made by `locks.all(names)`. */
  constructor(context: LockContext, names: Iterable<string>) {
    if (typeof names === 'string' || typeof names?.[Symbol.iterator] !== 'function')
      throw invalid("all() takes the names to lock, such as ['a', 'b']")
    this.#context = context
    const checked = Array.from(names, (name) => checkName(name, 'A name for all()'))
    if (checked.length === 0) throw invalid('all() needs at least one name')
    this.names = [...new Set(checked)].sort()
  }

  /** Waits for all of them, runs `work` while holding them, and releases them in any case. As `run` of a mutex. */
  async run<T>(work: (hold: MultiHold) => T | PromiseLike<T>, options: AcquireOptions = {}): Promise<T> {
    if (typeof work !== 'function') throw invalid('run() takes a function as its first argument')
    const entered = await this.#enter(options, this.#limits(options))
    if (!entered) throw await this.#timeout(options)
    return runInside(this.#context, {
      entered,
      work: (holds) => work(new MultiHold(holds)),
      areOrdered: true,
    })
  }

  /** Waits for all of them and gives the holds out as one. One wait time for the whole; what was taken is given back on failure. */
  async acquire(options: AcquireOptions = {}): Promise<MultiHold> {
    const entered = await this.#enter(options, this.#limits(options))
    if (!entered) throw await this.#timeout(options)
    return this.#holdOf(entered)
  }

  /** All of them if they are to be had at once, else null. */
  async tryAcquire(options: TryOptions = {}): Promise<MultiHold | null> {
    const entered = await this.#enter(options, { ...limits(options, EACH_TIME.tryAcquire), waitMs: 0 })
    return entered && this.#holdOf(entered)
  }

  #holdOf(entered: readonly Entered[]): MultiHold {
    return new MultiHold(entered.map((found) => holdOf(this.#context, found)))
  }

  #limits(options: AcquireOptions): Limits {
    return limits(options, EACH_TIME.acquire, this.#context.defaults)
  }

  async #timeout(options: AcquireOptions): Promise<HoldfastError> {
    const { waitMs } = this.#limits(options)
    const some = this.names.slice(0, NAMED_IN_ERRORS)
    const others = this.names.length - some.length
    const names = some.map((name) => `'${name}'`).join(', ') + (others > 0 ? ` and ${others} others` : '')
    const holders = await Promise.all(some.map((name) => holderOf(this.#context.engine, name)))
    const held = holders.findIndex((holder) => holder !== undefined)
    const who = held < 0 ? '' : `: '${some[held]}' is held by ${holders[held]}`
    const when = waitMs === 0 ? 'at once' : `within ${formatMs(waitMs)}`
    const message = `Could not acquire all of ${names} ${when}${who}; wait longer, or see who holds them with inspect()`
    return new HoldfastError('ACQUIRE_TIMEOUT', message, { retryable: true })
  }

  async #enter(given: HoldOptions, wait: Limits): Promise<Entered[] | null> {
    const { engine, defaults } = this.#context
    const options = withDefaults(given, defaults)
    this.#refuseDisorder(options.owner ?? null)
    const deadline = engine.env.now() + wait.waitMs
    for (let left = wait; ; left = limitsLeft(wait, deadline, engine.env.now())) {
      const taken = await this.#enterOnce(options, left, deadline)
      if (taken?.every(({ entry }) => engine.checkValidity(entry.request)) ?? true) return taken
      // One was lost while the others were waited for.
      await this.#giveBack(taken ?? [])
      if (engine.env.now() >= deadline) return null
    }
  }

  async #enterOnce(options: HoldOptions, wait: Limits, deadline: number): Promise<Entered[] | null> {
    const { engine } = this.#context
    const taken: Entered[] = []
    try {
      if (this.names.length > 1 || wait.waitMs === 0) taken.push(...(await this.#tryAll(options, wait)))
      for (const name of this.names.slice(taken.length)) {
        const left = limitsLeft(wait, deadline, engine.env.now())
        const found = left.waitMs > 0 ? await this.#waitFor(name, options, left) : null
        if (!found) return await this.#giveBack(taken)
        taken.push(found)
      }
      return taken
    } catch (error) {
      await this.#giveBack(taken)
      throw error
    }
  }

  /**
   * Tries for all of them in one round trip, and keeps those before the first that is taken. The others are given back before
   * anybody waits: out of order, one may hold, but never wait.
   */
  async #tryAll(options: HoldOptions, wait: Limits): Promise<Entered[]> {
    // A store that does not answer must not make them wait for longer than they wanted to.
    const limit = wait.waitMs === 0 ? {} : { answerWithinMs: Math.max(wait.waitMs, HEALTHY_MS) }
    const attempts = await Promise.allSettled(
      this.names.map((name) => this.#enterOne(name, options, { ...wait, ...limit, waitMs: 0 })),
    )
    const found = attempts.map((attempt) => (attempt.status === 'fulfilled' ? attempt.value : null))
    const failure = attempts.find((attempt) => attempt.status === 'rejected')
    const missing = found.indexOf(null)
    const kept = failure ? 0 : missing === -1 ? found.length : missing
    await this.#giveBack(found.slice(kept).filter((found) => found !== null))
    if (failure) throw failure.reason
    return found.slice(0, kept).filter((found) => found !== null)
  }

  /** null: the time was over. */
  async #waitFor(resource: string, options: HoldOptions, wait: Limits): Promise<Entered | null> {
    try {
      return await this.#enterOne(resource, options, wait)
    } catch (error) {
      if (error instanceof HoldfastError && error.code === 'ACQUIRE_TIMEOUT') return null
      throw error
    }
  }

  async #enterOne(resource: string, options: HoldOptions, wait: Limits): Promise<Entered | null> {
    const { order } = this.#context
    const kind = { resource, permits: EXCLUSIVE, capacity: EXCLUSIVE, isReentrant: true, order }
    return enter(this.#context, kind, options, wait)
  }

  async #giveBack(entered: readonly Entered[]): Promise<null> {
    await Promise.all(entered.map((found) => leave(this.#context.engine, found)))
    return null
  }

  /** Who holds 'b' and waits for 'a' may wait for one who holds 'a' and waits for 'b'. */
  #refuseDisorder(owner: string | null): void {
    const held = this.#held(owner)
    const last = [...held].sort().at(-1)
    const early = this.names.find((name) => !held.has(name) && last !== undefined && name < last)
    if (early === undefined) return
    throw invalid(
      `all() takes names in order, and '${early}' sorts before '${last}', which is held already: waiting for it could be a deadlock. Take both with one all(), or '${early}' first`,
      early,
    )
  }

  /** What counts for the order: everything that the flow has taken with `all`, and whatever it holds of these names. */
  #held(owner: string | null): Set<string> {
    const { engine, owners } = this.#context
    if (owner !== null) return new Set(this.names.filter((name) => owners.holds(name, owner)))
    const [held, asked] = [new Set<string>(), new Set(this.names)]
    for (const { isOrdered, entry } of heldFrames(engine)) {
      const { resource } = entry.request
      if (isOrdered || asked.has(resource)) held.add(resource)
    }
    return held
  }
}
