import { type Duration, toMs } from '../../../base/duration.js'
import { type Env, systemEnv } from '../../../base/env.js'
import { HoldfastError, invalid } from '../../../base/errors.js'
import { checkName } from '../../../base/names.js'
import { checkOptions, type OptionNames } from '../../../base/options.js'
import { driverOpener } from '../../../stores/redis/clients.js'
import { PeerCalls } from '../calls.js'
import type { PeerClaim, PeerGrant } from '../claim.js'
import { PeerHold } from '../hold.js'
import { PeerLock, type PeerLockKind } from '../lock.js'
import { readLease } from '../options.js'
import { RedissonClaim } from './claim.js'
import { RedissonClient } from './client.js'
import {
  fairFormat,
  fencedFormat,
  mutexFormat,
  type RedissonFormat,
  readFormat,
  writeFormat,
} from './formats.js'
import { RedissonLatch } from './latch.js'
import { runInside } from './owner.js'
import { RedissonSemaphore } from './semaphore.js'

/** The options of `redissonLock`. */
export interface RedissonLockOptions {
  /**
   * How long a lock lives without a renewal, as Redisson's `lockWatchdogTimeout`. Default: 30
   * seconds.
   */
  lease?: Duration | undefined
  /**
   * How long a waiter without a `wait` keeps its place in a fair line if its process dies. Give all
   * programs the same: Redisson calls it `fairLockWaitTimeout`. Default: 5 minutes, as there.
   */
  fairWait?: Duration | undefined
  /** Time and randomness of your own, for simulations. */
  env?: Env | undefined
}

const REDISSON_LOCK_OPTIONS: OptionNames<RedissonLockOptions> = { lease: true, fairWait: true, env: true }

/** A fenced lock that you hold. */
export class RedissonFencedHold extends PeerHold {
  /** Redisson's token: greater than that of every earlier holder, in any language. */
  readonly fence: number

  /** @internal */
  constructor(resource: string, grant: PeerGrant, env: Env) {
    super(resource, grant, env)
    this.fence = grant.fence ?? 0
  }
}

/** The two sides of a read-write lock. */
export interface RedissonReadWrite {
  /** Many readers may hold it together. */
  readonly read: PeerLock
  /** A writer holds it alone. It may enter `read` inside. */
  readonly write: PeerLock
}

/** The locks of Redisson, for one client. Made by `redissonLock`. */
export class RedissonLocks {
  readonly #client: RedissonClient

  /** @internal */
  constructor(client: object, options: RedissonLockOptions) {
    const {
      lease = '30s',
      fairWait = '5m',
      env = systemEnv,
    } = checkOptions(options, REDISSON_LOCK_OPTIONS, "{ lease: '30s' }")
    const driver = driverOpener(client)()
    if (driver.isCluster)
      throw new HoldfastError(
        'UNSUPPORTED',
        'In a Cluster, Redisson tells of a release by sharded messages, which Holdfast does not hear; use one server or Sentinel',
        { store: 'redis' },
      )
    if (driver.keyPrefix !== '')
      throw invalid('The client has a key prefix, so Redisson would look for other keys; give one without')
    const fairWaitMs = toMs(fairWait, { name: 'fairWait', minMs: 1 })
    this.#client = new RedissonClient(new PeerCalls(driver, env), readLease(lease), fairWaitMs)
  }

  /**
   * The lock that Redisson calls `getLock(name)`. Inside `run` it can be entered again.
   *
   * @example
   * ```ts
   * import { redissonLock } from 'holdfast/redis'
   * import { Redis } from 'ioredis'
   *
   * const order = redissonLock(new Redis()).mutex('order:42')
   * await order.run(async () => {
   *   await order.run(async () => console.log('entered twice, as by one thread of Java'))
   * })
   * ```
   */
  mutex(name: string): PeerLock {
    return this.#lock(name, mutexFormat)
  }

  /**
   * The lock that Redisson calls `getFairLock(name)`: served in the order of arrival, of both
   * languages.
   *
   * @example
   * ```ts
   * import { redissonLock } from 'holdfast/redis'
   * import { Redis } from 'ioredis'
   *
   * const locks = redissonLock(new Redis())
   * await locks.fair('ticket').run(async () => console.log('my turn'), { wait: '1m' })
   * ```
   */
  fair(name: string): PeerLock {
    return this.#lock(name, fairFormat)
  }

  /**
   * The lock that Redisson calls `getFencedLock(name)`. Its holds have a fence.
   *
   * @example
   * ```ts
   * import { redissonLock } from 'holdfast/redis'
   * import { Redis } from 'ioredis'
   *
   * await redissonLock(new Redis()).fenced('account:7').run(async ({ fence }) => {
   *   console.log('pass it to the resource:', fence)
   * })
   * ```
   */
  fenced(name: string): PeerLock<RedissonFencedHold> {
    const { env } = this.#client.calls
    const createHold = (resource: string, grant: PeerGrant) => new RedissonFencedHold(resource, grant, env)
    return new PeerLock(checkLockName(name), this.#kind(fencedFormat, createHold))
  }

  /**
   * The locks that Redisson calls `getReadWriteLock(name)`. Readers that keep coming can keep a
   * writer waiting: the format has no line.
   *
   * @example
   * ```ts
   * import { redissonLock } from 'holdfast/redis'
   * import { Redis } from 'ioredis'
   *
   * const { read, write } = redissonLock(new Redis()).readWrite('config')
   * await write.run(async () => console.log('alone'))
   * await read.run(async () => console.log('with other readers'))
   * ```
   */
  readWrite(name: string): RedissonReadWrite {
    return { read: this.#lock(name, readFormat), write: this.#lock(name, writeFormat) }
  }

  /**
   * The semaphore that Redisson calls `getSemaphore(name)`.
   *
   * @example
   * ```ts
   * import { redissonLock } from 'holdfast/redis'
   * import { Redis } from 'ioredis'
   *
   * const seats = redissonLock(new Redis()).semaphore('seats')
   * await seats.trySetPermits(3)
   * await seats.run(async () => console.log('one of three'))
   * ```
   */
  semaphore(name: string): RedissonSemaphore {
    return new RedissonSemaphore(checkLockName(name), this.#client)
  }

  /**
   * The latch that Redisson calls `getCountDownLatch(name)`.
   *
   * @example
   * ```ts
   * import { redissonLock } from 'holdfast/redis'
   * import { Redis } from 'ioredis'
   *
   * const ready = redissonLock(new Redis()).latch('ready')
   * await ready.trySetCount(2)
   * await ready.countDown()
   * ```
   */
  latch(name: string): RedissonLatch {
    return new RedissonLatch(checkLockName(name), this.#client)
  }

  #lock(name: string, format: RedissonFormat): PeerLock {
    const { env } = this.#client.calls
    const createHold = (resource: string, grant: PeerGrant) => new PeerHold(resource, grant, env)
    return new PeerLock(checkLockName(name), this.#kind(format, createHold))
  }

  #kind<H extends PeerHold>(
    format: RedissonFormat,
    createHold: (name: string, grant: PeerGrant) => H,
  ): PeerLockKind<H> {
    const client = this.#client
    return {
      env: client.calls.env,
      leaseMs: client.leaseMs,
      createHold,
      createClaim: (name) => new RedissonClaim(client, format, name),
      inside<T>(name: string, hold: H, claim: PeerClaim, work: () => Promise<T>): Promise<T> {
        const { owner } = claim as RedissonClaim
        return runInside({ client, family: format.family, name, owner, hold }, work)
      },
    }
  }
}

function checkLockName(name: string): string {
  return checkName(name, 'The name of a lock')
}
