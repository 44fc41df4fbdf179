import { HoldfastError } from '../../base/errors.js'
import type { Plan, StatementResult } from './plans.js'
import type { GuardStatement } from './statements.js'

/** The part of `node:sqlite`, `better-sqlite3` and `libsql` that we use. */
export interface SqliteClient {
  prepare(sql: string): SqliteClientStatement
}

/** A prepared statement of `SqliteClient`. */
export interface SqliteClientStatement {
  run(...values: never[]): { changes: number | bigint }
  all(...values: never[]): unknown[]
}

/** A `Client`, `PoolClient` or `Pool` of `pg`. */
export interface PgClient {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[]; rowCount: number | null }>
}

/** The `sql` of `postgres` (postgres.js), or the one of its `begin`. */
export interface PostgresJsClient {
  // biome-ignore lint/suspicious/noExplicitAny: its own type lists what a value may be, which is wider than can be told here.
  unsafe(text: string, values: any[]): PromiseLike<ArrayLike<unknown> & { count: number }>
}

/** A connection or pool of `mysql2/promise` or `mariadb`. */
export interface MysqlClient {
  // biome-ignore lint/suspicious/noExplicitAny: the two differ in what they take and answer; `mysqlRunner` sorts it out.
  query(sql: string, values: any): Promise<any>
}

/** Runs one statement through a driver. */
export type StatementRunner = (statement: GuardStatement) => Promise<StatementResult>

export function sqliteRunner(client: SqliteClient): (statement: GuardStatement) => StatementResult {
  return ({ sql, values, isRead }) => {
    const prepared = client.prepare(sql)
    if (isRead) return { rows: prepared.all(...(values as never[])), changes: 0 }
    return { rows: [], changes: Number(prepared.run(...(values as never[])).changes) }
  }
}

export function postgresRunner(client: PgClient | PostgresJsClient): StatementRunner {
  if ('unsafe' in client)
    return async ({ sql, values }) => {
      const rows = await client.unsafe(sql, [...values])
      return { rows: Array.from(rows), changes: rows.count }
    }
  return async ({ sql, values }) => {
    const { rows, rowCount } = await client.query(sql, [...values])
    return { rows, changes: rowCount ?? 0 }
  }
}

export function mysqlRunner(client: MysqlClient): StatementRunner {
  return async ({ sql, values, isRead }) => {
    const reply = await client.query(sql, [...values])
    // mysql2 answers [result, fields], mariadb the result alone. A result is an array of rows, or
    // counts.
    const result = Array.isArray(reply) && (!isRead || Array.isArray(reply[0])) ? reply[0] : reply
    if (isRead) return { rows: result, changes: 0 }
    if (typeof result?.affectedRows !== 'number')
      throw new HoldfastError(
        'UNSUPPORTED',
        'The MySQL driver did not say how many rows changed; use mysql2 or mariadb',
      )
    return { rows: [], changes: result.affectedRows }
  }
}

export function runNow<T>(plan: Plan<T>, run: (statement: GuardStatement) => StatementResult): T {
  let step = plan.next()
  while (!step.done) step = plan.next(run(step.value))
  return step.value
}

export async function runLater<T>(plan: Plan<T>, run: StatementRunner): Promise<T> {
  let step = plan.next()
  while (!step.done) step = plan.next(await run(step.value))
  return step.value
}
