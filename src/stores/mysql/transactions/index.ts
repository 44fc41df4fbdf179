import { Driver, type MysqlPool } from '../driver.js'
import type { Names } from '../sql/names.js'
import { TransactionLock } from './lock.js'

/** The part of a connection that most work needs; name your driver's own type to have all of it. */
export interface SqlTransaction {
  /** Runs a statement in the transaction. What it resolves with is the driver's own: `[rows, fields]` with mysql2, the rows with mariadb. */
  // biome-ignore lint/suspicious/noExplicitAny: rows are what the statement makes of them.
  query(sql: string, values?: unknown[]): Promise<any>
}

/** One for each pool and table: nested runs are to find each other, wherever their lock was made. */
const locks = new WeakMap<object, Map<string, TransactionLock<unknown>>>()

export function lockOfPool<Tx>(pool: MysqlPool, names: Names, createSchema: boolean): TransactionLock<Tx> {
  const known = locks.get(pool) ?? new Map<string, TransactionLock<unknown>>()
  const driver = new Driver(pool, false)
  locks.set(pool, known)
  const key = JSON.stringify([names.rowLock, createSchema])
  const lock = known.get(key) ?? new TransactionLock<unknown>(driver, names, createSchema)
  known.set(key, lock)
  return lock as TransactionLock<Tx>
}
