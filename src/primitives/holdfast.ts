/// <reference lib="esnext.disposable" preserve="true" />
import { type Duration, toMs } from '../base/duration.js'
import { type Env, systemEnv } from '../base/env.js'
import { invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import { nothing } from '../base/nothing.js'
import { checkOptions, type OptionNames } from '../base/options.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type { Finding, Store } from '../contract/store.js'
import { Engine } from '../engine/engine.js'
import { watchHold } from '../engine/forgotten.js'
import { acquireTimeout } from '../engine/limits.js'
import { Owners } from '../engine/owners.js'
import type { RequestSpec } from '../engine/spec.js'
import { Barrier } from './barrier.js'
import { Election } from './election.js'
import { decodeExported } from './exported.js'
import { Hold } from './hold.js'
import { Latch, type LatchOptions } from './latch.js'
import { type LockedDecorator, locked, type NameOf } from './locked.js'
import { MultiLock } from './multi-lock.js'
import { Mutex } from './mutex.js'
import { type OnceOptions, type OnceOutcome, once } from './once.js'
import {
  type AcquireOptions,
  checkDefaults,
  checkOrder,
  HOLD_OPTIONS,
  type HoldOptions,
  type LockOptions,
  type LockOrder,
  requestSpec,
} from './options.js'
import { ReadWriteLock } from './read-write.js'
import type { LockContext } from './reentry.js'
import { Semaphore } from './semaphore.js'
import { StripedLock } from './striped.js'
import { storeFromUrl } from './urls.js'
import { type HolderView, holderView, type ResourceView, resourceView } from './views.js'

/** What a client can be told when it is made. */
export interface HoldfastOptions {
  /** Keeps applications apart: names of different spaces never meet. Default `'default'`. */
  space?: string | undefined
  /** How long a waiter that fell silent keeps its place in line. Default: as long as its lease, at most `'30s'`. */
  presence?: Duration | undefined
  /** How long the store may be silent before a call fails with STORE_UNAVAILABLE. Default `'10s'`. */
  storeTimeout?: Duration | undefined
  /**
   * In which order the waiters of its mutexes and read-write locks are served, where those say nothing else: `'cohort'`, neighbours in one
   * process pass a lock on among themselves; or `'strict'`, everybody in the order of arrival. Default `'cohort'`. See `docs/order.md`.
   */
  order?: LockOrder | undefined
  /** How long its locks wait in line, where a call says nothing else. Default: for ever. */
  wait?: Duration | undefined
  /** The lease of its locks, where a call says nothing else. Default `'30s'`. */
  lease?: Duration | undefined
  /** The longest that its locks are held, where a call says nothing else. Default: no cap. */
  maxHold?: Duration | undefined
  /**
   * How long `close()` lets running work finish before it takes the holds away: `'30s'`, or 0 for not at all. Default `'5s'`.
   * See `docs/closing.md`.
   */
  drain?: Duration | undefined
  /** Time, randomness and timers other than the machine's, for simulations. */
  env?: Env | undefined
}

/** What `ping` can be told. */
export interface PingOptions {
  /** How long to wait for the store's answer. Default `'1s'`. */
  timeout?: Duration | undefined
}

const PING_OPTIONS: OptionNames<PingOptions> = { timeout: true }

const HOLDFAST_OPTIONS: OptionNames<HoldfastOptions> = {
  space: true,
  presence: true,
  storeTimeout: true,
  order: true,
  wait: true,
  lease: true,
  maxHold: true,
  drain: true,
  env: true,
}

/** What `close` can be told. */
export interface CloseOptions {
  /** How long running work may take to finish: `'30s'`, or 0 for not at all. Default: that of the client, `'5s'`. */
  drain?: Duration | undefined
}

const CLOSE_OPTIONS: OptionNames<CloseOptions> = { drain: true }
const DEFAULT_DRAIN = '5s'

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
  /** @internal What other modules of the package build their own primitives on. */
  static contextOf(locks: Holdfast): LockContext {
    return locks.#context
  }

  readonly #engine: Engine
  readonly #context: LockContext
  readonly #env: Env
  readonly #drainMs: number

  constructor(store: Store, options: HoldfastOptions = {}) {
    if (typeof store?.connect !== 'function')
      throw invalid(
        "new Holdfast() takes a store, such as sqlite('./locks.db'); for a URL use Holdfast.open()",
      )
    this.#env = checkOptions(options, HOLDFAST_OPTIONS, "{ space: 'shop' }").env ?? systemEnv
    const presenceMs =
      options.presence === undefined ? null : toMs(options.presence, { name: 'presence', minMs: 10 })
    const storeTimeoutMs = toMs(options.storeTimeout ?? '10s', { name: 'storeTimeout', minMs: 1 })
    const space = checkName(options.space ?? 'default', 'The space')
    const order = checkOrder(options.order) ?? 'cohort'
    this.#drainMs = drainMs(options.drain ?? DEFAULT_DRAIN)
    this.#engine = new Engine(store, { env: this.#env, space, storeTimeoutMs })
    this.#context = {
      engine: this.#engine,
      owners: new Owners(this.#engine),
      presenceMs,
      order,
      defaults: checkDefaults(options),
      leaderships: new Set(),
    }
  }

  /**
   * A client for the store that a URL names: `memory:`, `sqlite:PATH`, `redis://HOST:PORT`, `postgres://HOST/DATABASE`,
   * `mysql://HOST/DATABASE` or `zookeeper://HOST:PORT`. Resolves when the store has answered.
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
      await locks.#engine.operator.reach()
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
  mutex(name: string, options: LockOptions = {}): Mutex {
    return new Mutex(this.#context, name, options)
  }

  /**
   * The read-write lock of that name: many readers, or one writer. See `docs/read-write-lock.md`.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * const config = locks.readWrite('config')
   * await config.read.run(async () => console.log('reading, with others'))
   * await config.write.run(async () => console.log('writing, alone'))
   * ```
   */
  readWrite(name: string, options: LockOptions = {}): ReadWriteLock {
    return new ReadWriteLock(this.#context, name, options)
  }

  /**
   * The semaphore of that name: at most `capacity` permits at once. All processes must declare the same capacity, or CAPACITY_MISMATCH
   * is thrown. See `docs/semaphore.md`.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * await locks.semaphore('gpu', 4).run(async () => console.log('one of four'), { wait: '1m' })
   * ```
   */
  semaphore(name: string, capacity: number): Semaphore {
    return new Semaphore(this.#context, name, capacity)
  }

  /**
   * The latch of that name, which opens when it was counted down `total` times. See `docs/latch.md`.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * const ready = locks.latch('ready', 1)
   * await ready.countDown()
   * await ready.wait({ wait: '1m' })
   * ```
   */
  latch(name: string, total: number, options: LatchOptions = {}): Latch {
    return new Latch(this.#context, name, total, options)
  }

  /**
   * The barrier of that name, where `parties` wait for each other, round after round. See `docs/barrier.md`.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * const phase = locks.barrier('phase', 2)
   * await Promise.all([phase.meet(), phase.meet()])
   * ```
   */
  barrier(name: string, parties: number): Barrier {
    return new Barrier(this.#context, name, parties)
  }

  /**
   * A lock in `count` segments; a key always leads to the same one. See `docs/striped-lock.md`.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * await locks.striped('stock', 100).for('user:7').run(async () => console.log('one of a hundred segments'))
   * ```
   */
  striped(name: string, count: number): StripedLock {
    return new StripedLock(this.#context, name, count)
  }

  /**
   * Several mutexes, all or none, in an order that cannot deadlock. See `docs/multi-lock.md`.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * await locks.all(['account:7', 'account:9']).run(async (hold) => console.log(hold.fences), { wait: '5s' })
   * ```
   */
  all(names: Iterable<string>): MultiLock {
    return new MultiLock(this.#context, names)
  }

  /**
   * The election of that name: of many candidates one leads. See `docs/election.md`.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * const leadership = await locks.election('scheduler').campaign({ id: 'node-1' })
   * console.log('leading in term', leadership.term)
   * await leadership.resign()
   * ```
   */
  election(name: string): Election {
    return new Election(this.#context, name)
  }

  /**
   * Runs scheduled work in one of many processes: the others, and ticks that come less than `atLeast` after its start, skip it.
   * See `docs/once.md`.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * const outcome = await locks.once('nightly', { atLeast: '10m', atMost: '1h' }, async (hold) => {
   *   console.log('only here, with fence', hold.fence)
   * })
   * console.log(outcome.ran ? 'done' : 'somebody else did it')
   * ```
   */
  once<T>(
    name: string,
    options: OnceOptions,
    work: (hold: Hold) => T | PromiseLike<T>,
  ): Promise<OnceOutcome<T>> {
    return once(this.#context, name, options, work)
  }

  /**
   * A decorator that runs a method inside the mutex that its arguments name. See `docs/decorator.md`.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   *
   * class Orders {
   *   @locks.locked((id: string) => `order:${id}`)
   *   async pay(id: string) {
   *     console.log('nobody else pays', id)
   *   }
   * }
   * await new Orders().pay('42')
   * ```
   */
  // biome-ignore lint/suspicious/noExplicitAny: parameters that are not typed may be anything
  locked<Args extends any[]>(
    name: string | NameOf<Args>,
    options: AcquireOptions = {},
  ): LockedDecorator<Args> {
    return locked(this.#context, name, options)
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
  async *inspect(
    query: {
      /** Only resources whose names begin so. Default: all of the space. */
      prefix?: string | undefined
    } = {},
  ): AsyncGenerator<ResourceView, void, void> {
    const { prefix = '' } = checkOptions(query, { prefix: true }, "{ prefix: 'order:' }")
    if (typeof prefix !== 'string') throw invalid('prefix must be the beginning of a name')
    for await (const line of this.#engine.operator.inspect({ prefix })) yield resourceView(line, this.#env)
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
  async breakHold(
    name: string,
    options: {
      /** Only the hold with this fence, as `inspect()` shows it. Default: every hold of the resource. */
      fence?: number | undefined
    } = {},
  ): Promise<HolderView[]> {
    const resource = checkName(name, 'The name of a resource')
    const { fence } = checkOptions(options, { fence: true }, '{ fence: 42 }')
    // Only a fence that is not there at all means "every holder": null is a fence that somebody failed to find.
    if (fence !== undefined && !Number.isSafeInteger(fence))
      throw invalid('fence must be the number of the hold to break', resource)
    const robbed = await this.#engine.operator.evict(resource, fence ?? null)
    return robbed.map((claim) => holderView(claim, claim.fence ?? 0, this.#env))
  }

  /**
   * Looks at the live store and says in plain words what is fine, what is risky and what is wrong with it. `holdfast doctor`
   * prints the same.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   *
   * const locks = await Holdfast.open('sqlite:./locks.db')
   * for (const finding of await locks.check())
   *   if (finding.level !== 'fine') console.warn(finding.about, finding.text)
   * await locks.close()
   * ```
   */
  check(): Promise<Finding[]> {
    return this.#engine.operator.check()
  }

  /**
   * Asks the store for a sign of life: one cheap call, for the health check of a service. Resolves with the milliseconds that
   * it took; rejects with STORE_UNAVAILABLE if no answer comes within `timeout`, by default `'1s'`.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * const isHealthy = await locks.ping({ timeout: '500ms' }).then(
   *   () => true,
   *   () => false,
   * )
   * console.log(isHealthy)
   * ```
   */
  async ping(options: PingOptions = {}): Promise<number> {
    const { timeout = '1s' } = checkOptions(options, PING_OPTIONS, "{ timeout: '1s' }")
    return this.#engine.operator.ping(toMs(timeout, { name: 'timeout', minMs: 1 }))
  }

  /**
   * The spaces of the store, in alphabetical order; some may be empty.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory(), { space: 'shop' })
   * console.log(await locks.spaces())
   * ```
   */
  spaces(): Promise<string[]> {
    return this.#engine.operator.spaces()
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
    checkOptions(options, HOLD_OPTIONS, "{ label: 'checkout' }")
    const { space, resource, id, fence, permits, capacity, leaseMs, maxHoldMs } = decodeExported(passed)
    if (space !== this.#engine.space)
      throw invalid(
        `The passed hold is of space '${space}', this client of '${this.#engine.space}'`,
        resource,
      )
    const isReentrant = capacity === EXCLUSIVE
    const { lease = leaseMs, maxHold = maxHoldMs ?? undefined } = options
    const spec: RequestSpec = {
      ...requestSpec(
        { resource, permits, capacity, isReentrant },
        { ...options, lease, maxHold },
        this.#context.presenceMs,
      ),
      mode: 'adopt',
      adopts: { id, fence },
    }
    const entry = await this.#engine.acquire(spec, { waitMs: 0, signal: undefined })
    if (!entry) throw acquireTimeout(resource, 0)
    if (spec.owner !== null && isReentrant) this.#context.owners.remember(entry.request)
    const hold = new Hold(this.#engine, entry)
    watchHold(this.#engine, entry, hold, nothing)
    return hold
  }

  /**
   * Refuses new requests and turns waiters away with CLOSED, lets running work finish for the time of `drain`, then takes away what
   * is still held, and closes what Holdfast has opened. See `docs/closing.md`.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   *
   * const locks = await Holdfast.open('sqlite:./locks.db')
   * process.once('SIGTERM', () => void locks.close({ drain: '20s' }))
   * ```
   */
  close(options: CloseOptions = {}): Promise<void> {
    const { drain } = checkOptions(options, CLOSE_OPTIONS, "{ drain: '20s' }")
    return this.#engine.closing.close(drain === undefined ? this.#drainMs : drainMs(drain))
  }

  /** For `await using`: closes, with the drain of the client. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

function drainMs(drain: Duration): number {
  return toMs(drain, { name: 'drain', infinite: true })
}
