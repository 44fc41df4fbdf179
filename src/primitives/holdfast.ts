import { type Duration, toMs } from '../base/duration.js'
import { type Env, systemEnv } from '../base/env.js'
import { invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import type { Store } from '../contract/store.js'
import type { ClaimSpec } from '../engine/claim.js'
import { Engine } from '../engine/engine.js'
import { Hold } from '../engine/hold.js'
import { acquireTimeout } from '../engine/limits.js'
import { Owners } from '../engine/owners.js'
import { decodePassed } from '../engine/passed.js'
import type { LockContext } from './lock.js'
import { Mutex } from './mutex.js'
import { checkOptions, claimSpec, type HoldOptions } from './options.js'
import { storeFromUrl } from './urls.js'
import { type HolderView, holderView, type ResourceView, resourceView } from './views.js'

export interface HoldfastOptions {
  /** Keeps applications apart: names of different spaces never meet. Default `'default'`. */
  space?: string
  /** How long a waiter that fell silent keeps its place in line. Default: as long as its lease, at most `'30s'`. */
  presence?: Duration
  /** How long the store may be silent before a call fails with STORE_UNAVAILABLE. Default `'10s'`. */
  storeTimeout?: Duration
  /** Time, randomness and timers other than the machine's, for simulations. */
  env?: Env
}

/**
 * A client of a store, and the way to all locks. One per process is enough: it keeps all its holds and places in line alive
 * with one call now and then.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { sqlite } from 'holdfast/sqlite'
 *
 * const locks = new Holdfast(sqlite('./locks.db'), { space: 'shop' })
 * await locks.mutex('order:42').run(async (hold) => {
 *   console.log('nobody else is here; fence', hold.fence)
 * })
 * await locks.close()
 * ```
 */
export class Holdfast implements AsyncDisposable {
  readonly #engine: Engine
  readonly #context: LockContext
  readonly #env: Env

  constructor(store: Store, options: HoldfastOptions = {}) {
    if (typeof store?.connect !== 'function')
      throw invalid(
        "new Holdfast() takes a store, such as sqlite('./locks.db'); for a URL use Holdfast.open()",
      )
    this.#env = checkOptions(options, "{ space: 'shop' }").env ?? systemEnv
    const presenceMs =
      options.presence === undefined ? null : toMs(options.presence, { name: 'presence', minMs: 10 })
    const storeTimeoutMs = toMs(options.storeTimeout ?? '10s', { name: 'storeTimeout', minMs: 1 })
    const space = checkName(options.space ?? 'default', 'The space')
    this.#engine = new Engine(store, { env: this.#env, space, storeTimeoutMs })
    this.#context = { engine: this.#engine, owners: new Owners(this.#engine), presenceMs }
  }

  /**
   * A client for the store that a URL names: `memory:` or `sqlite:PATH`. Resolves when the store has answered.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   *
   * const locks = await Holdfast.open('sqlite:./locks.db', { space: 'shop' })
   * await locks.close()
   * ```
   */
  static async open(url: string, options: HoldfastOptions = {}): Promise<Holdfast> {
    const locks = new Holdfast(await storeFromUrl(url), options)
    try {
      await locks.#engine.reach()
      return locks
    } catch (error) {
      await locks.close().catch(() => {})
      throw error
    }
  }

  /**
   * The mutex of that name. Nothing is sent; make one wherever you need it.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * await locks.mutex('invoice:7').run(async () => {})
   * ```
   */
  mutex(name: string): Mutex {
    return new Mutex(this.#context, name)
  }

  /**
   * Who holds and who waits, resource by resource.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * for await (const resource of locks.inspect({ prefix: 'order:' })) {
   *   console.log(resource.name, resource.holders.length, 'hold,', resource.waiters.length, 'wait')
   * }
   * ```
   */
  async *inspect(query: { prefix?: string } = {}): AsyncGenerator<ResourceView, void, void> {
    const { prefix = '' } = checkOptions(query, "{ prefix: 'order:' }")
    if (typeof prefix !== 'string') throw invalid('prefix must be the beginning of a name')
    for await (const line of this.#engine.inspect({ prefix })) yield resourceView(line, this.#env)
  }

  /**
   * Takes a hold away from its holder, who is told: for an operator who knows that it is stuck. Without a fence, every holder
   * of the resource. Gives those who were robbed.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * for (const robbed of await locks.breakHold('order:42')) console.log('took it from', robbed.host, robbed.pid)
   * ```
   */
  async breakHold(name: string, options: { fence?: number } = {}): Promise<HolderView[]> {
    const resource = checkName(name, 'The name of a resource')
    const { fence } = checkOptions(options, '{ fence: 42 }')
    // Only a fence that is not there at all means "every holder": null is a fence that somebody failed to find.
    if (fence !== undefined && !Number.isSafeInteger(fence))
      throw invalid('fence must be the number of the hold to break', resource)
    const robbed = await this.#engine.evict(resource, fence ?? null)
    return robbed.map((claim) => holderView(claim, claim.fence ?? 0, this.#env))
  }

  /**
   * Takes over a hold that another process has passed on with `hold.export()`: with a new fence, and lost over there.
   * Throws NOT_HELD if it is no longer held.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   *
   * export async function continueWork(passed: string) {
   *   const locks = await Holdfast.open('sqlite:./locks.db')
   *   await using hold = await locks.adopt(passed)
   *   console.log('mine now, with fence', hold.fence)
   * }
   * ```
   */
  async adopt(passed: string, options: HoldOptions = {}): Promise<Hold> {
    const { space, resource, id, fence, permits, capacity, leaseMs, maxHoldMs } = decodePassed(passed)
    if (space !== this.#engine.space)
      throw invalid(
        `The passed hold is of space '${space}', this client of '${this.#engine.space}'`,
        resource,
      )
    const limits = maxHoldMs === null ? { lease: leaseMs } : { lease: leaseMs, maxHold: maxHoldMs }
    const spec: ClaimSpec = {
      ...claimSpec({ resource, permits, capacity }, { ...limits, ...options }, this.#context.presenceMs),
      adopts: { id, fence },
    }
    const claim = await this.#engine.acquire(spec, { waitMs: 0, signal: undefined })
    if (!claim) throw acquireTimeout(resource, 0)
    if (spec.owner !== null) this.#context.owners.remember(claim)
    return new Hold(this.#engine, claim)
  }

  /** Turns those who wait away with CLOSED, gives back every hold, and closes what Holdfast has opened. */
  close(): Promise<void> {
    return this.#engine.close()
  }

  /** For `await using`: closes. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
