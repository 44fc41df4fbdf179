/// <reference lib="esnext.disposable" preserve="true" />
import { type Duration, toMs } from '../base/duration.js'
import { type Env, systemEnv } from '../base/env.js'
import { invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import { nothing } from '../base/nothing.js'
import { checkOptions, type OptionNames } from '../base/options.js'
import { acquireTimeout } from '../calls/limits.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type { Finding, Store } from '../contract/store.js'
import { Engine } from '../engine/engine.js'
import { watchHold } from '../engine/forgotten.js'
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
import { Operator } from './operator.js'
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
import { type Overview, overview } from './overview.js'
import { Owners } from './owners.js'
import { ReadWriteLock } from './read-write.js'
import type { LockContext } from './reentry.js'
import { resizeSemaphore, Semaphore } from './semaphore.js'
import { StripedLock } from './striped.js'
import { storeFromUrl } from './urls.js'
import {
  type HolderView,
  holderView,
  type ResourceView,
  resourceView,
  type WaiterView,
  waiterView,
} from './views.js'

/** The options of a client. */
export interface HoldfastOptions {
  /**
   * Keeps applications apart: equal names in different spaces do not collide. Default `'default'`.
   */
  space?: string | undefined
  /**
   * How long a waiter keeps its place in line without a heartbeat. Default: as long as its lease,
   * at most `'30s'`.
   */
  presence?: Duration | undefined
  /**
   * How long the store may be silent before a call fails with STORE_UNAVAILABLE. Default `'10s'`.
   */
  storeTimeout?: Duration | undefined
  /**
   * The order in which waiters of mutexes and read-write locks are served, unless a lock sets its
   * own. `'cohort'`: waiters in one process pass a lock on among themselves. `'strict'`: all
   * waiters in the order of arrival. Default `'cohort'`. See `docs/order.md`.
   */
  order?: LockOrder | undefined
  /** How long to wait in line, unless a call says otherwise. Default: forever. */
  wait?: Duration | undefined
  /** The lease of locks, unless a call says otherwise. Default `'30s'`. */
  lease?: Duration | undefined
  /** The longest time that a lock is held, unless a call says otherwise. Default: no cap. */
  maxHold?: Duration | undefined
  /**
   * The most that may wait for a lock, unless a call says otherwise. Default: no bound. See
   * `docs/bounded-lines.md`.
   */
  maxWaiters?: number | undefined
  /**
   * How long `close()` waits for running work before it revokes the holds: `'30s'`, or 0 to revoke
   * them at once. Default `'5s'`. See `docs/closing.md`.
   */
  drain?: Duration | undefined
  /** A source of time, randomness and timers in place of the machine's, for simulations. */
  env?: Env | undefined
}

/** The options of `ping`. */
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
  maxWaiters: true,
  drain: true,
  env: true,
}

/** The options of `close`. */
export interface CloseOptions {
  /**
   * How long to wait for running work: `'30s'`, or 0 for not at all. Default: the client's `drain`,
   * `'5s'`.
   */
  drain?: Duration | undefined
}

const CLOSE_OPTIONS: OptionNames<CloseOptions> = { drain: true }
const DEFAULT_DRAIN = '5s'

/**
 * A client of a store, from which you get all locks. One per process is enough: it renews all its
 * holds and places in line with one call now and then.
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
  /** @internal For other modules of the package that build their own primitives. */
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
    // All options are checked before this client connects: nobody could close it otherwise.
    const defaults = checkDefaults(options)
    this.#drainMs = drainMs(options.drain ?? DEFAULT_DRAIN)
    this.#engine = new Engine(store, { env: this.#env, space, storeTimeoutMs })
    this.#context = {
      engine: this.#engine,
      operator: new Operator(this.#engine),
      owners: new Owners(this.#engine),
      presenceMs,
      order,
      defaults,
      leaderships: new Set(),
    }
  }

  /**
   * Opens a client for the store that a URL names: `memory:`, `sqlite:PATH`, `redis://HOST:PORT`
   * (with TLS `rediss:`; also `redis+sentinel:`, `redis+cluster:`), `postgres://HOST/DATABASE`,
   * `mysql://HOST/DATABASE`, `zookeeper://HOST:PORT`, `etcd://HOST:PORT`,
   * `memcached://HOST:PORT` or `quorum:URL,URL,URL`. Resolves when the store has answered.
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
      await locks.#context.operator.reach()
      return locks
    } catch (error) {
      await locks.close().catch(() => {})
      throw error
    }
  }

  /**
   * The mutex of that name. This sends nothing; make one wherever you need it.
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
   * The semaphore of that name: at most `capacity` permits at once. All processes must declare the
   * same capacity; otherwise CAPACITY_MISMATCH is thrown. See `docs/semaphore.md`.
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
   * The latch of that name, which opens after `total` counts. See `docs/latch.md`.
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
   * The barrier of that name, where `parties` wait for each other, round after round. See
   * `docs/barrier.md`.
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
   * A lock in `count` segments; a key always maps to the same one. See `docs/striped-lock.md`.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * const segment = locks.striped('stock', 100).for('user:7')
   * await segment.run(async () => console.log('one of a hundred segments'))
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
   * const accounts = locks.all(['account:7', 'account:9'])
   * await accounts.run(async (hold) => console.log(hold.fences), { wait: '5s' })
   * ```
   */
  all(names: Iterable<string>): MultiLock {
    return new MultiLock(this.#context, names)
  }

  /**
   * The election of that name: one of many candidates leads. See `docs/election.md`.
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
   * Runs scheduled work in one of many processes. The others skip it, and so does every tick less
   * than `atLeast` after its start. See `docs/once.md`.
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
   * A decorator that runs a method inside the mutex that its arguments name. See
   * `docs/decorator.md`.
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
   * Lists the holders and waiters of each resource.
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
      /** Only resources whose names start with this. Default: all of the space. */
      prefix?: string | undefined
      /**
       * Only the resource of exactly this name. It is shown even if nobody is in its line, where
       * `resize()` has changed its capacity.
       */
      name?: string | undefined
    } = {},
  ): AsyncGenerator<ResourceView, void, void> {
    const { prefix = '', name } = checkOptions(query, { prefix: true, name: true }, "{ prefix: 'order:' }")
    if (typeof prefix !== 'string') throw invalid('prefix must be the beginning of a name')
    const exact = name === undefined ? {} : { resource: checkName(name, 'The name of a resource') }
    const lines = this.#context.operator.inspect({ prefix, ...exact })
    for await (const line of lines) yield resourceView(line, this.#env)
  }

  /**
   * Revokes a hold, and tells its holder. Use it as an operator, when you know that the holder is
   * stuck. Without a fence it revokes every hold of the resource. Returns the previous holders.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * for (const previous of await locks.breakHold('order:42'))
   *   console.log('took it from', previous.host, previous.pid)
   * ```
   */
  async breakHold(
    name: string,
    options: {
      /**
       * Only the hold with this fence, as `inspect()` shows it. Default: every hold of the
       * resource.
       */
      fence?: number | undefined
    } = {},
  ): Promise<HolderView[]> {
    const resource = checkName(name, 'The name of a resource')
    const { fence } = checkOptions(options, { fence: true }, '{ fence: 42 }')
    // Only an omitted fence means every holder: null is a fence that the caller failed to find.
    if (fence !== undefined && !Number.isSafeInteger(fence))
      throw invalid('fence must be the number of the hold to break', resource)
    const revoked = await this.#context.operator.evict(resource, fence ?? null)
    return revoked.map((claim) => holderView(claim, claim.fence ?? 0, this.#env))
  }

  /**
   * Takes a waiter out of the line, and tells it: all requests that wait with this claim fail with
   * CANCELLED, and do not ask again. Several requests of one process may share a claim. Returns the
   * waiter; null if it does not wait (any more). A claim that was granted in the same moment stays.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * for await (const { name, waiters } of locks.inspect({ prefix: 'order:' }))
   *   for (const { id, host } of waiters) if (host === 'old-server') await locks.cancelWaiter(name, id)
   * ```
   */
  async cancelWaiter(name: string, id: string): Promise<WaiterView | null> {
    const resource = checkName(name, 'The name of a resource')
    if (typeof id !== 'string' || id === '')
      throw invalid('id must be the id of a waiter, as inspect() shows it', resource)
    const [cancelled] = await this.#context.operator.cancel(resource, id)
    return cancelled ? waiterView(cancelled, this.#env) : null
  }

  /**
   * Changes the number of permits of a semaphore whose declared capacity you do not know, as
   * `semaphore(name, capacity).resize()` does. Throws INVALID_ARGUMENT if nobody uses it and it was
   * never resized: then only its users know what they declare.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * await using gpu = await locks.semaphore('gpu', 4).acquire()
   * await locks.resizeSemaphore('gpu', 6)
   * console.log(gpu.fence)
   * ```
   */
  async resizeSemaphore(name: string, capacity: number): Promise<void> {
    await resizeSemaphore(this.#context, checkName(name, 'The name of a semaphore'), capacity)
  }

  /**
   * The elections, latches, barriers and jobs of `once()` in this space: who leads and has led,
   * what is counted, who has arrived, what runs. For people and dashboards; it reads all of them.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const { elections } = await new Holdfast(memory()).overview()
   * for (const { name, leader, term } of elections) console.log(name, leader?.owner, term)
   * ```
   */
  overview(): Promise<Overview> {
    return overview(this.#context)
  }

  /**
   * Checks the live store, and says in plain words what is fine, risky or wrong. `holdfast doctor`
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
    return this.#context.operator.check()
  }

  /**
   * Checks that the store answers, with one cheap call, for the health check of a service. Resolves
   * with the milliseconds that it took. Rejects with STORE_UNAVAILABLE if no answer comes within
   * `timeout`, by default `'1s'`.
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
    return this.#context.operator.ping(toMs(timeout, { name: 'timeout', minMs: 1 }))
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
    return this.#context.operator.spaces()
  }

  /**
   * Takes over a hold that another process has exported with `hold.export()`. It gets a new fence
   * here, and is lost there. `lease` and `maxHold` are by default those of the exported hold.
   * Throws NOT_HELD if it is no longer held, and INVALID_ARGUMENT if it belongs to another space.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   *
   * export async function continueWork(exported: string) {
   *   const locks = await Holdfast.open('sqlite:./locks.db')
   *   await using hold = await locks.adopt(exported)
   *   console.log('mine now, with fence', hold.fence)
   * }
   * ```
   */
  async adopt(exported: string, options: HoldOptions = {}): Promise<Hold> {
    checkOptions(options, HOLD_OPTIONS, "{ label: 'checkout' }")
    const { space, resource, id, fence, permits, capacity, leaseMs, maxHoldMs } = decodeExported(exported)
    if (space !== this.#engine.space)
      throw invalid(
        `The exported hold belongs to space '${space}', this client to '${this.#engine.space}'`,
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
   * Refuses new requests, and fails waiters with CLOSED. Lets running work finish for the time of
   * `drain`, then revokes the remaining holds. Closes what Holdfast has opened. See
   * `docs/closing.md`.
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
