import { type Env, systemEnv } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'
import { MysqlDriver, type MysqlPool } from '../../stores/mysql/driver.js'
import { explain, isDeadlock, isSchemaMissing } from '../../stores/mysql/failures.js'
import type { MysqlNames } from '../../stores/mysql/sql/names.js'
import { PoolCache } from '../../stores/shared/pools.js'
import type { LockFailure, LockTransaction, TransactionBackend } from '../transactions/backend.js'
import { TransactionLock } from '../transactions/lock.js'
import type { Isolation } from '../transactions/options.js'
import { RowLockBusy } from './row-lock.js'
import { MysqlLockTable } from './table.js'
import { MysqlTransaction } from './transaction.js'

/** The part of a connection that most work needs. To have all of it, name your driver's type. */
export interface MysqlSqlTransaction {
  /**
   * Runs a statement in the transaction. The result is that of the driver: `[rows, fields]` with
   * mysql2, the rows with mariadb.
   */
  // biome-ignore lint/suspicious/noExplicitAny: rows are what the statement makes of them.
  query(sql: string, values?: unknown[]): Promise<any>
}

/** Per pool and table: nested runs find each other wherever their lock was made. */
const locks = new PoolCache<TransactionLock<unknown>>()

export function mysqlTransactionLock<Tx>(
  pool: MysqlPool,
  names: MysqlNames,
  createSchema: boolean,
): TransactionLock<Tx> {
  const create = (): TransactionLock<unknown> =>
    new TransactionLock(
      new MysqlTransactionBackend(new MysqlDriver(pool, false), names, createSchema, systemEnv),
    )
  return locks.get(pool, [names.rowLock, createSchema], create) as TransactionLock<Tx>
}

class MysqlTransactionBackend implements TransactionBackend {
  readonly store = 'mysql'
  readonly #driver: MysqlDriver
  readonly #tableName: string
  readonly #table: MysqlLockTable
  readonly #env: Env

  constructor(driver: MysqlDriver, names: MysqlNames, createSchema: boolean, env: Env) {
    this.#driver = driver
    this.#tableName = names.rowLock
    this.#table = new MysqlLockTable(driver, names, createSchema, names.rowLock, 'turns')
    this.#env = env
  }

  ensureSchema(): Promise<void> {
    return this.#table.ensure()
  }

  forgetSchema(): void {
    this.#table.forget()
  }

  /** Destroys a connection whose settings cannot be restored. */
  async run<T>(
    isolation: Isolation | undefined,
    work: (transaction: LockTransaction) => Promise<T>,
  ): Promise<T> {
    const connection = await this.#driver.lend()
    const transaction = new MysqlTransaction(connection, this.#tableName, isolation, this.#env)
    try {
      await transaction.begin()
      const result = await work(transaction)
      await transaction.commit()
      await transaction.end()
      connection.release()
      return result
    } catch (error) {
      const ending = transaction
        .rollback()
        .then(() => transaction.end())
        .then(connection.release, connection.destroy)
      if (!transaction.isWaiting) await ending
      throw error
    }
  }

  failureOf(error: unknown): LockFailure {
    if (error instanceof RowLockBusy) return 'busy'
    return isSchemaMissing(error) ? 'schema missing' : 'other'
  }

  explain(error: unknown, resource: string): HoldfastError {
    if (!isDeadlock(error)) return explain(error)
    const message = `'${resource}' could not be locked: two transactions waited for each other's locks, and the server rolled this one back; lock several names in the same order everywhere`
    const details = { resource, store: 'mysql', cause: error, retryable: true }
    return new HoldfastError('STORE_UNAVAILABLE', message, details)
  }
}
