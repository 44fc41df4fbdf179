import { type Duration, toMs } from '../../base/duration.js'
import { type Env, systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import type { Capabilities, ClientContext, Connection, Store } from '../../contract/store.js'
import { type PlainKeyLockOptions, PlainKeyLocks } from '../../database-locks/redis/plain/plain-key.js'
import { type RedissonLockOptions, RedissonLocks } from '../../database-locks/redis/redisson/locks.js'
import { checkPackage, parseAddress, type RedisAddress } from './address.js'
import { RedisBackend } from './backend.js'
import { driverOpener } from './clients.js'
import { RedisConnection } from './connection.js'
import type { RedisDriver, Replicas } from './driver.js'
import { NO_TLS_THERE, openAddress, type PackageName } from './packages.js'

export type { PeerHold } from '../../database-locks/redis/hold.js'
export type { PeerLock } from '../../database-locks/redis/lock.js'
export type { PeerLockOptions } from '../../database-locks/redis/options.js'
export type { PlainKeyLockOptions, PlainKeyLocks } from '../../database-locks/redis/plain/plain-key.js'
export type { RedissonLatch, RedissonLatchOptions } from '../../database-locks/redis/redisson/latch.js'
export type {
  RedissonFencedHold,
  RedissonLockOptions,
  RedissonLocks,
  RedissonReadWrite,
} from '../../database-locks/redis/redisson/locks.js'
export type {
  RedissonPermits,
  RedissonSemaphore,
  RedissonSemaphoreOptions,
} from '../../database-locks/redis/redisson/semaphore.js'

/**
 * A client that you have: of ioredis 5 or 6, of iovalkey, or of node-redis (`redis` 5 or 6); also a
 * Cluster or Sentinel of theirs. The type is loose, so that the types of all these versions fit;
 * the store looks at the client itself.
 */
export type RedisClient = IoredisLike | NodeRedisLike

/** A client of ioredis or iovalkey. */
export interface IoredisLike {
  /** Runs a script by its hash. */
  evalsha(...args: never[]): unknown
  /** Makes one more connection with the same settings. */
  duplicate(...args: never[]): unknown
  /** Ends the connection. */
  disconnect(...args: never[]): unknown
}

/** A client of node-redis. */
export interface NodeRedisLike {
  /** Runs a script by its hash. */
  evalSha(...args: never[]): unknown
  /** Makes one more connection with the same settings. */
  duplicate(...args: never[]): unknown
  /** Ends the connection. */
  destroy(...args: never[]): unknown
}

/** The options of `redis`. Those in code override those in the URL. */
export interface RedisOptions {
  /** What all keys and channels begin with. Default: `holdfast`. */
  prefix?: string | undefined
  /**
   * With a URL: which package to use. Default: the first installed one of `ioredis`, `redis` and
   * `iovalkey`.
   */
  driver?: PackageName | undefined
  /** A grant or renewal counts only once this many replicas have it (WAIT). Default: 0. */
  replicas?: number | undefined
  /** How long to wait for them. Default: a second. */
  replicaTimeout?: Duration | undefined
  /**
   * How long an unused resource's counter is kept. While it is kept, a server clock that is set
   * back cannot lower a fence. Default: a minute.
   */
  retention?: Duration | undefined
  /** Time other than the server's, for simulations. */
  env?: Env | undefined
}

const REDIS_OPTIONS: OptionNames<RedisOptions> = {
  prefix: true,
  driver: true,
  replicas: true,
  replicaTimeout: true,
  retention: true,
  env: true,
}

/**
 * A store on Redis 6.2 or later, or Valkey: a single server, Sentinel or Cluster. It takes a URL or
 * your own client, which Holdfast does not close.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { redis } from 'holdfast/redis'
 *
 * const locks = new Holdfast(redis('redis://localhost:6379'))
 * await locks.mutex('report').run(async () => console.log('the only one in the fleet'))
 * await locks.close()
 * ```
 */
export function redis(urlOrClient: string | RedisClient, options: RedisOptions = {}): Store {
  checkOptions(options, REDIS_OPTIONS, "{ prefix: 'shop' }")
  const address = typeof urlOrClient === 'string' ? withOptions(parseAddress(urlOrClient), options) : null
  if (!address && options.driver !== undefined)
    throw invalid('driver applies only to a URL; a client of your own is used as it is')
  const openDriver = opener(address ?? urlOrClient, options.env ?? systemEnv)
  const retention = options.retention ?? address?.retention ?? '1m'
  const backend = new RedisBackend({
    openDriver,
    env: options.env ?? systemEnv,
    clock: options.env ?? null,
    prefix: checkPrefix(options.prefix ?? address?.prefix ?? 'holdfast'),
    replicas: checkReplicas(options, address),
    isSentinel: address?.kind === 'sentinel',
    hint: address?.tls ? `no connection by TLS so far; ${NO_TLS_THERE}` : null,
    retentionMs: Math.ceil(toMs(retention, { name: 'retention', minMs: 1000 })),
  })
  return new RedisStore(backend, address ? address.kind === 'cluster' : isCluster(urlOrClient))
}

/**
 * Locks that are one key each, set by `SET key token NX PX` and deleted only if the token is still
 * there: the format of the Redis documentation, of redis-py's `Lock`, redsync and bsm/redislock on
 * one server, and of more. The format has no line, no fence and no message: waiters poll. It takes
 * your own client, which Holdfast does not close. See `docs/sharing-locks.md`.
 *
 * @example
 * ```ts
 * import { plainKeyLock } from 'holdfast/redis'
 * import { Redis } from 'ioredis'
 *
 * const locks = plainKeyLock(new Redis())
 * await locks.mutex('report').run(async (hold) => {
 *   await fetch('https://example.com/report', { signal: hold.signal })
 * })
 * ```
 */
export function plainKeyLock(client: RedisClient, options: PlainKeyLockOptions = {}): PlainKeyLocks {
  return new PlainKeyLocks(checkClient(client, 'plainKeyLock'), options)
}

/**
 * The locks of Redisson 4, so that programs in Java and TypeScript share them: each wakes the other
 * by Redisson's channels, and honours its leases and counts. They are no line of Holdfast's, and do
 * not exclude `locks.mutex(…)` of the same name. It takes your own client of one server or
 * Sentinel, which Holdfast does not close. See `docs/sharing-locks.md`.
 *
 * @example
 * ```ts
 * import { redissonLock } from 'holdfast/redis'
 * import { Redis } from 'ioredis'
 *
 * const locks = redissonLock(new Redis())
 * await locks.mutex('order:42').run(async (hold) => {
 *   await fetch('https://shop.example/orders/42', { signal: hold.signal })
 * })
 * ```
 */
export function redissonLock(client: RedisClient, options: RedissonLockOptions = {}): RedissonLocks {
  return new RedissonLocks(checkClient(client, 'redissonLock'), options)
}

class RedisStore implements Store {
  readonly name = 'redis'
  readonly capabilities: Capabilities
  readonly #backend: RedisBackend

  constructor(backend: RedisBackend, isCluster: boolean) {
    this.#backend = backend
    this.capabilities = {
      perHoldLease: true,
      // 1000 take a few milliseconds, in which the server does nothing else. In a Cluster each line
      // is a command of its own anyway, and in a call of its own it does not wait for the dead
      // master of another line.
      maxBeats: isCluster ? 1 : 1000,
      askNextEveryMs: null,
      // WAIT covers the writes of its own connection only, and the releasing client writes a
      // hand-off.
      confirmHandOffs: backend.replicas !== null,
      takesFences: true,
      get tellsWanted() {
        return backend.subscription.isActive
      },
    }
  }

  connect(client: ClientContext): Connection {
    return new RedisConnection(this.#backend, client)
  }
}

function isCluster(client: unknown): boolean {
  const { nodes, nodeClient } = client as { nodes?: unknown; nodeClient?: unknown }
  return typeof nodes === 'function' || typeof nodeClient === 'function'
}

function opener(from: RedisAddress | string | RedisClient, env: Env): () => Promise<RedisDriver> {
  if (typeof from !== 'object' || from === null)
    throw invalid(
      'redis() takes a URL, such as redis://localhost:6379, or a client of ioredis, redis or iovalkey',
    )
  if ('kind' in from) return () => openAddress(from, env)
  const driverOf = driverOpener(from)
  return async () => driverOf()
}

function checkClient(client: unknown, of: string): object {
  if (typeof client === 'object' && client !== null) return client
  throw invalid(`${of}() takes a client of ioredis, redis or iovalkey`)
}

function withOptions(address: RedisAddress, { driver }: RedisOptions): RedisAddress {
  return driver === undefined ? address : { ...address, driver: checkPackage(driver) }
}

function checkPrefix(prefix: unknown): string {
  if (typeof prefix !== 'string' || !/^[^{}\s]+$/.test(prefix))
    throw invalid(`prefix is '${String(prefix)}', but must be text without braces or white space`)
  return prefix
}

function checkReplicas(options: RedisOptions, address: RedisAddress | null): Replicas | null {
  const replicas = options.replicas ?? address?.replicas ?? 0
  const replicaTimeout = options.replicaTimeout ?? address?.replicaTimeout ?? '1s'
  if (!Number.isInteger(replicas) || replicas < 0)
    throw invalid(`replicas is ${replicas}, but must be the number of replicas that must have a grant`)
  const timeoutMs = toMs(replicaTimeout, { name: 'replicaTimeout', minMs: 1 })
  return replicas === 0 ? null : { count: replicas, timeoutMs }
}
