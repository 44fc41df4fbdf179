import { type Env, systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'
import type { PostgresDriver } from '../../stores/postgres/driver.js'
import { explain, isBusy, isMissing, isUndone } from '../../stores/postgres/failures.js'
import { Installation } from '../../stores/postgres/install.js'
import { isPgPool, PgDriver } from '../../stores/postgres/pg.js'
import { isPostgresJs, PostgresJsDriver } from '../../stores/postgres/postgres-js.js'
import { PoolCache } from '../../stores/shared/pools.js'
import type { LockFailure, LockTransaction, TransactionBackend } from '../transactions/backend.js'
import { TransactionLock } from '../transactions/lock.js'
import type { Isolation } from '../transactions/options.js'
import { pgTransactions } from './pg-transactions.js'
import { postgresJsTransactions } from './postgres-js-transactions.js'
import type { RunPostgresTransaction } from './statements.js'
import { PostgresTransaction } from './transaction.js'

/**
 * The part of a transaction of `pg` that most work needs. To have all of it, name your driver's own
 * type.
 */
export interface PostgresSqlTransaction {
  /** Runs a statement in the transaction. */
  // biome-ignore lint/suspicious/noExplicitAny: rows are what the statement makes of them.
  query(text: string, values?: unknown[]): Promise<{ rows: any[]; rowCount: number | null }>
}

/** Per pool and schema: nested runs find each other wherever their lock was made. */
const locks = new PoolCache<TransactionLock<unknown>>()

export function postgresTransactionLock<Tx>(pool: object, schema: string): TransactionLock<Tx> {
  const create = (): TransactionLock<unknown> => new TransactionLock(backendOf(pool, schema, systemEnv))
  return locks.get(pool, [schema], create) as TransactionLock<Tx>
}

function backendOf(pool: object, schema: string, env: Env): TransactionBackend {
  if (isPgPool(pool))
    return new PostgresTransactionBackend(pgTransactions(pool), new PgDriver(pool, null, env), schema, env)
  if (isPostgresJs(pool))
    return new PostgresTransactionBackend(
      postgresJsTransactions(pool),
      new PostgresJsDriver(pool, null),
      schema,
      env,
    )
  throw invalid('transactionLock() takes a Pool of pg, or the sql of postgres')
}

class PostgresTransactionBackend implements TransactionBackend {
  readonly store = 'postgres'
  readonly explain = explain
  readonly #run: RunPostgresTransaction
  readonly #driver: PostgresDriver
  readonly #schema: string
  readonly #env: Env
  readonly #installation: Installation

  constructor(run: RunPostgresTransaction, driver: PostgresDriver, schema: string, env: Env) {
    this.#run = run
    this.#driver = driver
    this.#schema = schema
    this.#env = env
    this.#installation = new Installation(schema)
  }

  ensureSchema(): Promise<void> {
    return this.#installation.ensure(this.#driver)
  }

  forgetSchema(): void {
    this.#installation.forget()
  }

  run<T>(isolation: Isolation | undefined, work: (transaction: LockTransaction) => Promise<T>): Promise<T> {
    const modes = isolation === undefined ? '' : `ISOLATION LEVEL ${isolation.toUpperCase()}`
    return this.#run(modes, (statements) =>
      work(new PostgresTransaction(statements, this.#schema, this.#env)),
    )
  }

  failureOf(error: unknown): LockFailure {
    if (isBusy(error)) return 'busy'
    if (isUndone(error)) return 'rolled back'
    return isMissing(error) ? 'schema missing' : 'other'
  }
}
