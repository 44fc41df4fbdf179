import { type Env, systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'
import { isPgPool, PgDriver } from '../../stores/postgres/pg.js'
import { PoolCache } from '../../stores/shared/pools.js'
import { SessionLockCalls, type SessionLockOptions } from '../sessions/acquire.js'
import { SessionBoundHold, type SessionGrant } from '../sessions/hold.js'
import { AdvisoryBackend } from './advisory-backend.js'
import { advisoryKey } from './advisory-key.js'
import type { PgSessionConnection } from './session-connection.js'

/** An advisory lock that is held: until it is released, or its session ends. */
export class AdvisoryHold extends SessionBoundHold<string | bigint> {
  /** Its key, as `pg_advisory_lock(bigint)` and `pg_locks` know it. */
  readonly key: bigint

  /** @internal */
  constructor(resource: string | bigint, key: string, grant: SessionGrant) {
    super(resource, grant)
    this.key = BigInt(key)
  }
}

const ADVISORY = {
  keyOf: advisoryKey,
  createHold: (name: string | bigint, key: string, grant: SessionGrant) => new AdvisoryHold(name, key, grant),
}

/** The advisory locks of one process on one pool. Made by `advisory`. */
export class AdvisoryLocks {
  readonly #calls: SessionLockCalls<string | bigint, AdvisoryHold, PgSessionConnection>

  /** @internal */
  constructor(backend: AdvisoryBackend, env: Env) {
    this.#calls = new SessionLockCalls(ADVISORY, backend, env)
  }

  /**
   * Takes the lock of a name, or of a key of your own, and waits until it is free. Throws
   * ACQUIRE_TIMEOUT when the wait is over, ABORTED when the signal aborts.
   *
   * @example
   * ```ts
   * import { advisory } from 'holdfast/postgres'
   * import pg from 'pg'
   *
   * const hold = await advisory(new pg.Pool()).acquire('nightly-report', { wait: '5s' })
   * console.log('my fence is', hold.fence)
   * await hold.release()
   * ```
   */
  acquire(name: string | bigint, options: SessionLockOptions = {}): Promise<AdvisoryHold> {
    return this.#calls.acquire(name, options)
  }

  /**
   * Takes the lock if it is free; resolves with null if it is not.
   *
   * @example
   * ```ts
   * import { advisory } from 'holdfast/postgres'
   * import pg from 'pg'
   *
   * const hold = await advisory(new pg.Pool()).tryAcquire(42n)
   * if (hold === null) console.log('another process is working on it')
   * ```
   */
  tryAcquire(name: string | bigint): Promise<AdvisoryHold | null> {
    return this.#calls.tryAcquire(name)
  }

  /**
   * Runs work with the lock, and releases it. Rejects with HOLD_LOST if the lock was lost before
   * the work was done; an error of the work itself comes first.
   *
   * @example
   * ```ts
   * import { advisory } from 'holdfast/postgres'
   * import pg from 'pg'
   *
   * await advisory(new pg.Pool()).run('nightly-report', async ({ signal }) => {
   *   await fetch('https://example.com/report', { signal })
   * })
   * ```
   */
  run<T>(
    name: string | bigint,
    work: (hold: AdvisoryHold) => T | Promise<T>,
    options: SessionLockOptions = {},
  ): Promise<T> {
    return this.#calls.run(name, work, options)
  }
}

/** Per pool and schema: tasks of one process never hold the same lock twice. */
const locks = new PoolCache<AdvisoryLocks>()

export function advisoryLocks(pool: object, schema: string): AdvisoryLocks {
  return locks.get(pool, [schema], () => {
    if (!isPgPool(pool))
      throw invalid('advisory() takes a Pool of pg: only pg reports at once that a connection has ended')
    const driver = new PgDriver(pool, null, systemEnv)
    return new AdvisoryLocks(new AdvisoryBackend(pool, driver, schema, systemEnv), systemEnv)
  })
}
