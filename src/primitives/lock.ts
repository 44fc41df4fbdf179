import { HoldfastError, invalid } from '../base/errors.js'
import type { Claim, ClaimSpec } from '../engine/claim.js'
import type { Engine } from '../engine/engine.js'
import { currentFrame, Frame, findFrame } from '../engine/flow.js'
import { Hold } from '../engine/hold.js'
import { aborted, acquireTimeout, type Limits, limitsLeft } from '../engine/limits.js'
import type { Owners } from '../engine/owners.js'
import { type AcquireOptions, claimSpec, type LockKind, limits, type TryOptions } from './options.js'

/** What the locks of one client share. */
export interface LockContext {
  readonly engine: Engine
  readonly owners: Owners
  /** null: as long as the lease. */
  readonly presenceMs: number | null
}

/** A way in, counted already: every entry ends in a hold, or is left again. */
interface Entry {
  readonly claim: Claim
  /** The caller's callback is over, or there is none: lets the next nested run of the same frame in. */
  readonly leaveTurn: () => void
  /** The hold was released: the frame that was entered again need not wait for it any more. */
  readonly leaveFrame: () => void
}

/** Everything that can be held: the primitives differ in what they ask for, not in how they ask. */
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
   * Waits for the lock, runs `work` while holding it, and releases it in any case. The value or the error of `work` is passed
   * through. If the hold was lost before `work` settled, rejects with HOLD_LOST; an error of `work` itself wins.
   * Inside `work`, the same lock can be entered again without waiting.
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
  async run<T>(work: (hold: Hold) => T | PromiseLike<T>, options: AcquireOptions = {}): Promise<T> {
    if (typeof work !== 'function') throw invalid('run() takes a function as its first argument', this.name)
    const wait = limits(options)
    const entry = await this.#enter(options, wait)
    if (!entry) throw acquireTimeout(this.name, wait.waitMs)
    try {
      return await this.#runInside(entry, work)
    } finally {
      entry.leaveTurn()
    }
  }

  /**
   * Waits for the lock and gives the hold out. Throws ACQUIRE_TIMEOUT when the wait is over, ABORTED when the signal aborts.
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
  async acquire(options: AcquireOptions = {}): Promise<Hold> {
    const wait = limits(options)
    const hold = await this.#take(options, wait)
    if (!hold) throw acquireTimeout(this.name, wait.waitMs)
    return hold
  }

  /**
   * The hold if it is to be had at once, else null. Never overtakes those who wait.
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
    return this.#take(options, { ...limits(options), waitMs: 0 })
  }

  /** Whether anybody holds it now. By the time you read the answer it may have changed: for people, not for decisions. */
  async isLocked(): Promise<boolean> {
    for await (const line of this.#context.engine.inspect({ prefix: '', resource: this.name })) {
      return line.claims.some((claim) => claim.fence !== null)
    }
    return false
  }

  async #take(options: AcquireOptions, wait: Limits): Promise<Hold | null> {
    const entry = await this.#enter(options, wait)
    if (!entry) return null
    // Without a callback nobody knows where its inside ends, so it cannot keep the others of its frame out.
    entry.leaveTurn()
    return new Hold(this.#context.engine, entry.claim, entry.leaveFrame)
  }

  async #runInside<T>(entry: Entry, work: (hold: Hold) => T | PromiseLike<T>): Promise<T> {
    const { engine } = this.#context
    const hold = new Hold(engine, entry.claim, entry.leaveFrame)
    const frame = new Frame(engine, entry.claim, currentFrame())
    const outcome = await settled(() => frame.run(() => work(hold)))
    const wasValid = hold.isReleased || engine.checkValidity(entry.claim)
    await frame.close()
    // A failed release hides neither the value nor the error of the work: the hold ends with its lease.
    const wasHeld = await hold.release().catch(() => true)
    if ('error' in outcome) throw outcome.error
    if (!wasValid || !wasHeld) throw entry.claim.lostBecause ?? lostUnnoticed(this.name)
    return outcome.value
  }

  /** Enters again where the flow or the owner holds already, else asks the store. null: not to be had at once. */
  async #enter(options: AcquireOptions, wait: Limits): Promise<Entry | null> {
    const { engine, owners, presenceMs } = this.#context
    const spec = claimSpec(this.#kind, options, presenceMs)
    engine.throwIfClosed()
    if (wait.signal?.aborted) throw aborted(this.name, wait.signal)
    const frame = spec.owner === null ? findFrame(engine, this.name) : undefined
    const deadline = engine.env.now() + wait.waitMs
    const again = frame ? await this.#enterAgain(frame, spec, wait) : 'lost'
    if (again !== 'lost') return again
    const left = frame ? limitsLeft(wait, deadline, engine.env.now()) : wait
    const claim = spec.owner === null ? await engine.acquire(spec, left) : await owners.acquire(spec, left)
    return claim && { claim, leaveTurn: () => {}, leaveFrame: () => {} }
  }

  /** null: not to be had at once. 'lost': the hold was lost while this one waited for its turn, so there is nothing to enter. */
  async #enterAgain(frame: Frame, spec: ClaimSpec, wait: Limits): Promise<Entry | null | 'lost'> {
    const { engine } = this.#context
    if (wait.waitMs === 0 && !frame.turns.isFree) return null
    const claim = frame.claim.enter(spec)
    const leaveFrame = frame.enter()
    try {
      const leaveTurn = await frame.turns.take(engine.env, wait, this.name)
      if (engine.checkValidity(claim)) return { claim, leaveTurn, leaveFrame }
      leaveTurn()
    } catch (error) {
      leaveFrame()
      await engine.leave(claim)
      throw error
    }
    leaveFrame()
    await engine.leave(claim)
    return 'lost'
  }
}

/** The value or the error of the work, whether it throws, rejects or returns any thenable. */
async function settled<T>(work: () => T | PromiseLike<T>): Promise<{ value: T } | { error: unknown }> {
  try {
    return { value: await work() }
  } catch (error) {
    return { error }
  }
}

function lostUnnoticed(resource: string): HoldfastError {
  const message = `The hold of '${resource}' was lost before the work was done: the store no longer had it at the release`
  return new HoldfastError('HOLD_LOST', message, { resource })
}
