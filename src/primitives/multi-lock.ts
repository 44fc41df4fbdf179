import { formatMs } from '../base/duration.js'
import { HoldfastError, invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import { HEALTHY_MS } from '../calls/calls.js'
import { type Limits, limitsLeft } from '../calls/limits.js'
import { EXCLUSIVE } from '../contract/constants.js'
import { currentFrame, type Frame, heldFrames } from '../engine/flow.js'
import type { Entry } from '../engine/request.js'
import { holderOf } from './holder.js'
import { MultiHold } from './multi-hold.js'
import {
  type AcquireOptions,
  CALL_OPTIONS,
  type HoldOptions,
  limits,
  type TryOptions,
  withDefaults,
} from './options.js'
import { enter, type LockContext, leave } from './reentry.js'
import { holdOf, runInside } from './run.js'

const NAMED_IN_ERRORS = 3

/** Asks for one of them. */
type Ask = (name: string, wait: Limits) => Promise<Entry | null>

/**
 * Several mutexes, all or none. They are taken in the order of their names, so that two such locks
 * never deadlock, however their names overlap. Names that the flow already holds are entered again.
 * A new name that sorts before one of those is refused: waiting for it could deadlock.
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
  /** The names in the order in which they are taken, without duplicates. */
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

  /**
   * Waits for all of them, runs `work` while holding them, and always releases them, like `run` of
   * a mutex.
   */
  async run<T>(work: (hold: MultiHold) => T | PromiseLike<T>, options: AcquireOptions = {}): Promise<T> {
    if (typeof work !== 'function') throw invalid('run() takes a function as its first argument')
    const entries = await this.#enter(options, this.#limits(options))
    if (!entries) throw await this.#timeout(options)
    return runInside(this.#context, {
      entries,
      work: (holds) => work(new MultiHold(holds)),
      areOrdered: true,
    })
  }

  /**
   * Waits for all of them and returns the holds as one. `wait` covers them all. On failure, those
   * already taken are given back.
   */
  async acquire(options: AcquireOptions = {}): Promise<MultiHold> {
    const entries = await this.#enter(options, this.#limits(options))
    if (!entries) throw await this.#timeout(options)
    return this.#holdOf(entries)
  }

  /** Returns all of them if they are free, otherwise null. */
  async tryAcquire(options: TryOptions = {}): Promise<MultiHold | null> {
    const entries = await this.#enter(options, { ...limits(options, CALL_OPTIONS.tryAcquire), waitMs: 0 })
    return entries && this.#holdOf(entries)
  }

  #holdOf(entries: readonly Entry[]): MultiHold {
    return new MultiHold(entries.map((entry) => holdOf(this.#context, entry)))
  }

  #limits(options: AcquireOptions): Limits {
    return limits(options, CALL_OPTIONS.acquire, this.#context.defaults)
  }

  async #timeout(options: AcquireOptions): Promise<HoldfastError> {
    const { waitMs } = this.#limits(options)
    const some = this.names.slice(0, NAMED_IN_ERRORS)
    const others = this.names.length - some.length
    const names = some.map((name) => `'${name}'`).join(', ') + (others > 0 ? ` and ${others} others` : '')
    const holders = await Promise.all(some.map((name) => holderOf(this.#context, name)))
    const held = holders.findIndex((holder) => holder !== undefined)
    const who = held < 0 ? '' : `: '${some[held]}' is held by ${holders[held]}`
    const when = waitMs === 0 ? 'at once' : `within ${formatMs(waitMs)}`
    const message = `Could not acquire all of ${names} ${when}${who}; wait longer, or see who holds them with locks.inspect() or holdfast ls`
    return new HoldfastError('ACQUIRE_TIMEOUT', message, { retryable: true })
  }

  async #enter(given: HoldOptions, wait: Limits): Promise<Entry[] | null> {
    const { engine, defaults } = this.#context
    const options = withDefaults(given, defaults)
    this.#refuseDisorder(options.owner ?? null)
    // Of all alike: if the work around it ends meanwhile, that still waits for what is entered now.
    const innermost = currentFrame()
    const ask: Ask = (name, left) => this.#enterOne(name, options, left, innermost)
    const deadline = engine.env.now() + wait.waitMs
    for (let left = wait; ; left = limitsLeft(wait, deadline, engine.env.now())) {
      const taken = await this.#enterOnce(ask, left, deadline)
      if (taken?.every(({ request }) => engine.checkValidity(request)) ?? true) return taken
      // One was lost during the wait for the others.
      await this.#giveBack(taken ?? [])
      if (engine.env.now() >= deadline) return null
    }
  }

  async #enterOnce(ask: Ask, wait: Limits, deadline: number): Promise<Entry[] | null> {
    const { engine } = this.#context
    const taken: Entry[] = []
    try {
      const areTried = this.names.length > 1 || wait.waitMs === 0
      if (areTried) taken.push(...(await this.#tryAll(ask, wait)))
      for (const name of this.names.slice(taken.length)) {
        const left = limitsLeft(wait, deadline, engine.env.now())
        // However short the wait is, each is asked for once.
        const entry = left.waitMs > 0 || !areTried ? await this.#waitFor(name, ask, left) : null
        if (!entry) return await this.#giveBack(taken)
        taken.push(entry)
      }
      return taken
    } catch (error) {
      await this.#giveBack(taken)
      throw error
    }
  }

  /**
   * Tries all of them in one round trip, and keeps those before the first that is not free. The
   * others are given back before the wait: out of order, a caller may hold but never wait.
   */
  async #tryAll(ask: Ask, wait: Limits): Promise<Entry[]> {
    // A store that does not answer must not delay callers beyond their own wait.
    const limit = wait.waitMs === 0 ? {} : { answerWithinMs: Math.max(wait.waitMs, HEALTHY_MS) }
    const attempts = await Promise.allSettled(
      this.names.map((name) => ask(name, { ...wait, ...limit, waitMs: 0 })),
    )
    const entries = attempts.map((attempt) => (attempt.status === 'fulfilled' ? attempt.value : null))
    const failure = attempts.find((attempt) => attempt.status === 'rejected')
    const missing = entries.indexOf(null)
    const kept = failure ? 0 : missing === -1 ? entries.length : missing
    await this.#giveBack(entries.slice(kept).filter((entry) => entry !== null))
    if (failure) throw failure.reason
    return entries.slice(0, kept).filter((entry) => entry !== null)
  }

  /** null: the time was over. */
  async #waitFor(resource: string, ask: Ask, wait: Limits): Promise<Entry | null> {
    try {
      return await ask(resource, wait)
    } catch (error) {
      if (error instanceof HoldfastError && error.code === 'ACQUIRE_TIMEOUT') return null
      throw error
    }
  }

  async #enterOne(
    resource: string,
    options: HoldOptions,
    wait: Limits,
    innermost: Frame | undefined,
  ): Promise<Entry | null> {
    const { order } = this.#context
    const kind = {
      resource,
      permits: EXCLUSIVE,
      capacity: EXCLUSIVE,
      isReentrant: true,
      order,
      primitive: 'all',
    } as const
    return enter(this.#context, kind, options, wait, innermost)
  }

  async #giveBack(entries: readonly Entry[]): Promise<null> {
    await Promise.all(entries.map((entry) => leave(this.#context.engine, entry)))
    return null
  }

  /** A holder of 'b' that waits for 'a' may deadlock with a holder of 'a' that waits for 'b'. */
  #refuseDisorder(owner: string | null): void {
    const held = this.#held(owner)
    const last = [...held].sort().at(-1)
    const early = this.names.find((name) => !held.has(name) && last !== undefined && name < last)
    if (early === undefined) return
    throw invalid(
      `all() takes names in order, and '${early}' sorts before '${last}', which is held already: waiting for it could deadlock. Take both with one all(), or '${early}' first`,
      early,
    )
  }

  /**
   * The names that count for the order: all that the flow took with `all`, and those of this lock
   * that it holds.
   */
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
