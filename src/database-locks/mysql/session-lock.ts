import { type Env, systemEnv } from '../../base/env.js'
import { checkName } from '../../base/names.js'
import { MysqlDriver, type MysqlPool } from '../../stores/mysql/driver.js'
import type { MysqlNames } from '../../stores/mysql/sql/names.js'
import { PoolCache } from '../../stores/shared/pools.js'
import { SessionLockCalls, type SessionLockOptions } from '../sessions/acquire.js'
import { SessionBoundHold, type SessionGrant } from '../sessions/hold.js'
import { MysqlSessionBackend } from './session-backend.js'
import type { MysqlSessionConnection } from './session-connection.js'
import { sessionLockName } from './session-lock-name.js'

/**
 * A lock of a session. It has no lease: it lasts until it is released, or its connection ends.
 *
 * @example
 * ```ts
 * import { sessionLock } from 'holdfast/mysql'
 * import { createPool } from 'mysql2/promise'
 *
 * const pool = createPool('mysql://app:secret@localhost:3306/app')
 * const hold = await sessionLock(pool).acquire('nightly-report')
 * hold.signal.addEventListener('abort', () => console.log('the lock is lost'))
 * console.log(hold.fence)
 * if (!(await hold.release())) console.log('it had been lost')
 * await pool.end()
 * ```
 */
export class SessionHold extends SessionBoundHold<string> {}

const SESSION_LOCK = {
  keyOf: (name: string) => sessionLockName(checkName(name, 'The name of a lock')),
  createHold: (name: string, _key: string, grant: SessionGrant) => new SessionHold(name, grant),
}

/** Locks of GET_LOCK, on connections of a pool. Made by `sessionLock`. */
export class SessionLock {
  readonly #calls: SessionLockCalls<string, SessionHold, MysqlSessionConnection>

  /** @internal */
  constructor(backend: MysqlSessionBackend, env: Env) {
    this.#calls = new SessionLockCalls(SESSION_LOCK, backend, env)
  }

  /**
   * Takes the lock, and waits until it is free. Throws ACQUIRE_TIMEOUT when the wait is over,
   * ABORTED when the signal aborts.
   *
   * @example
   * ```ts
   * import { sessionLock } from 'holdfast/mysql'
   * import { createPool } from 'mysql2/promise'
   *
   * const pool = createPool('mysql://app:secret@localhost:3306/app')
   * await using hold = await sessionLock(pool).acquire('nightly-report', { wait: '5s' })
   * console.log(hold.fence)
   * ```
   */
  acquire(name: string, options: SessionLockOptions = {}): Promise<SessionHold> {
    return this.#calls.acquire(name, options)
  }

  /**
   * Takes the lock if it is free; resolves with null if it is not.
   *
   * @example
   * ```ts
   * import { sessionLock } from 'holdfast/mysql'
   * import { createPool } from 'mysql2/promise'
   *
   * const pool = createPool('mysql://app:secret@localhost:3306/app')
   * const hold = await sessionLock(pool).tryAcquire('nightly-report')
   * if (!hold) console.log('another process is working on it')
   * ```
   */
  tryAcquire(name: string): Promise<SessionHold | null> {
    return this.#calls.tryAcquire(name)
  }

  /**
   * Runs work under the lock and releases it. Rejects with HOLD_LOST if the lock was lost before
   * the work was done; the signal of the hold aborts at once.
   *
   * @example
   * ```ts
   * import { sessionLock } from 'holdfast/mysql'
   * import { createPool } from 'mysql2/promise'
   *
   * const pool = createPool('mysql://app:secret@localhost:3306/app')
   * await sessionLock(pool).run('nightly-report', async (hold) => {
   *   console.log('one in the whole fleet, with fence', hold.fence)
   * })
   * ```
   */
  run<T>(
    name: string,
    work: (hold: SessionHold) => T | Promise<T>,
    options: SessionLockOptions = {},
  ): Promise<T> {
    return this.#calls.run(name, work, options)
  }
}

/** Per pool and table: tasks of one process never hold the same lock twice. */
const locks = new PoolCache<SessionLock>()

export function mysqlSessionLock(pool: MysqlPool, names: MysqlNames, createSchema: boolean): SessionLock {
  return locks.get(pool, [names.sessionLock, createSchema], () => {
    const backend = new MysqlSessionBackend(new MysqlDriver(pool, false), names, createSchema, systemEnv)
    return new SessionLock(backend, systemEnv)
  })
}
