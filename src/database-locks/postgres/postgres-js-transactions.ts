import type { Value } from '../../stores/postgres/driver.js'
import type { PostgresJs } from '../../stores/postgres/postgres-js.js'
import type { PostgresStatements, RunPostgresTransaction } from './statements.js'

/** The `sql` of a transaction of postgres.js. */
interface TransactionSql {
  unsafe(text: string, values: Value[]): PromiseLike<unknown>
  savepoint<T>(work: (sql: TransactionSql) => Promise<T>): Promise<T>
}

interface TransactionBeginner {
  begin<T>(modes: string, work: (sql: TransactionSql) => Promise<T>): Promise<T>
}

/** Runs transactions of postgres.js, which begins, commits and rolls back by itself. */
export function postgresJsTransactions(sql: PostgresJs): RunPostgresTransaction {
  const beginner = sql as unknown as TransactionBeginner
  return (modes, work) => beginner.begin(modes, (inner) => work(new PostgresJsStatements(inner)))
}

class PostgresJsStatements implements PostgresStatements {
  readonly client: TransactionSql

  constructor(sql: TransactionSql) {
    this.client = sql
  }

  async run(text: string, values: readonly Value[]): Promise<void> {
    await this.client.unsafe(text, [...values])
  }

  part<T>(work: (inner: PostgresStatements) => Promise<T>): Promise<T> {
    return this.client.savepoint((sql) => work(new PostgresJsStatements(sql)))
  }
}
