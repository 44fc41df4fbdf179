import type { Value } from '../driver.js'
import type { PostgresJs } from '../postgres-js.js'
import type { Transaction, Transactions } from './transactions.js'

/** The `sql` of a transaction of postgres.js. */
interface TransactionSql {
  unsafe(text: string, values: Value[]): PromiseLike<unknown>
  savepoint<T>(work: (sql: TransactionSql) => Promise<T>): Promise<T>
}

/** Transactions of postgres.js, which begins, commits and rolls back by itself. */
export class PostgresJsTransactions implements Transactions {
  readonly #sql: PostgresJs

  constructor(sql: PostgresJs) {
    this.#sql = sql
  }

  run<T>(begin: string, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const { begin: start } = this.#sql as unknown as {
      begin(options: string, work: (sql: TransactionSql) => Promise<T>): Promise<T>
    }
    return start(begin.replace(/^BEGIN ?/, ''), (sql) => work(new PostgresJsTransaction(sql)))
  }
}

class PostgresJsTransaction implements Transaction {
  readonly own: TransactionSql

  constructor(sql: TransactionSql) {
    this.own = sql
  }

  async change(text: string, values: readonly Value[]): Promise<void> {
    await this.own.unsafe(text, [...values])
  }

  part<T>(work: (inner: Transaction) => Promise<T>): Promise<T> {
    return this.own.savepoint((sql) => work(new PostgresJsTransaction(sql)))
  }
}
