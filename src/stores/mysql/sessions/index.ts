import { systemEnv } from '../../../base/env.js'
import { SessionLocks } from '../../../drivers/session-locks/locks.js'
import { Driver, type MysqlPool } from '../driver.js'
import { Runner } from '../runner.js'
import type { Names } from '../sql/names.js'
import { SessionLock } from './lock.js'
import { SessionServer } from './server.js'

/** One for each pool and set of tables: two tasks of a process never hold the same lock. */
const locks = new WeakMap<object, Map<string, SessionLock>>()

export function sessionLockOfPool(pool: MysqlPool, names: Names, createSchema: boolean): SessionLock {
  const known = locks.get(pool) ?? new Map<string, SessionLock>()
  const driver = new Driver(pool, false)
  locks.set(pool, known)
  const key = JSON.stringify([names.sessionLock, createSchema])
  const lock = known.get(key) ?? make(driver, names, createSchema)
  known.set(key, lock)
  return lock
}

function make(driver: Driver, names: Names, createSchema: boolean): SessionLock {
  const runner = new Runner({ openDriver: async () => driver, names, createSchema })
  return new SessionLock(new SessionLocks(new SessionServer(driver, runner), systemEnv))
}
