import { systemEnv } from '../../../base/env.js'
import { invalid } from '../../../base/errors.js'
import { isPgPool, PgDriver } from '../pg.js'
import { isPostgresJs, PostgresJsDriver } from '../postgres-js.js'
import { TransactionLock } from './lock.js'
import { PgTransactions } from './pg.js'
import { PostgresJsTransactions } from './postgres-js.js'

/** The part of a transaction of `pg` that most work needs; name your driver's own type to have all of it. */
export interface SqlTransaction {
  /** Runs a statement in the transaction. */
  // biome-ignore lint/suspicious/noExplicitAny: rows are what the statement makes of them.
  query(text: string, values?: unknown[]): Promise<{ rows: any[]; rowCount: number | null }>
}

/** One for each pool and schema: nested runs are to find each other, wherever their lock was made. */
const locks = new WeakMap<object, Map<string, TransactionLock<unknown>>>()

export function lockOfPool<Tx>(pool: unknown, schema: string): TransactionLock<Tx> {
  const { transactions, driver } = driversOf(pool)
  const known = locks.get(pool as object) ?? new Map<string, TransactionLock<unknown>>()
  locks.set(pool as object, known)
  const lock = known.get(schema) ?? new TransactionLock<unknown>(transactions, driver, schema)
  known.set(schema, lock)
  return lock as TransactionLock<Tx>
}

function driversOf(pool: unknown) {
  if (isPgPool(pool))
    return { transactions: new PgTransactions(pool), driver: new PgDriver(pool, null, systemEnv) }
  if (isPostgresJs(pool))
    return { transactions: new PostgresJsTransactions(pool), driver: new PostgresJsDriver(pool, null) }
  throw invalid('transactionLock() takes a Pool of pg, or the sql of postgres')
}
