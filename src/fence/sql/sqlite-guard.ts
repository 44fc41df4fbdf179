import type { Fenced, FenceRegister } from '../fenced.js'
import { runNow, type SqliteClient, sqliteRunner } from './clients.js'
import { sqliteDialect } from './dialect.js'
import { type FenceSql, fenceSql, SIDE_TABLE, type SqlGuardOptions } from './guard.js'
import { planCheck, planRowFence, planUpdate } from './plans.js'
import { type GuardedRow, type GuardedUpdate, tableStatement } from './statements.js'

/**
 * Guarded writes through your SQLite database. Every method is synchronous, so that it can be used
 * inside the transactions of `better-sqlite3` and `libsql`. Made by `sqliteGuard`.
 */
export class SqliteGuard implements FenceRegister {
  readonly #run: ReturnType<typeof sqliteRunner>
  readonly #table: string

  /** @internal */
  constructor(database: SqliteClient, options: SqlGuardOptions) {
    this.#run = sqliteRunner(database)
    this.#table = options.table ?? SIDE_TABLE
  }

  /**
   * Updates one row. Throws STALE_FENCE if its fence column has a newer fence. NULL means never
   * written. Returns false if there is no such row.
   *
   * @example
   * ```ts
   * import type { Hold } from 'holdfast'
   * import type { SqliteGuard } from 'holdfast/fence'
   *
   * export function pay(hold: Hold, guard: SqliteGuard) {
   *   const isThere = guard.update(hold, { table: 'orders', set: { state: 'paid' }, where: { id: 42 } })
   *   if (!isThere) throw new Error('no such order')
   * }
   * ```
   */
  update(hold: Fenced | number, update: GuardedUpdate): boolean {
    return runNow(planUpdate(sqliteDialect, hold, update), this.#run)
  }

  /**
   * Checks the fence against the side table, and remembers it there. Throws STALE_FENCE if a newer
   * one was seen. Call it first in the transaction that writes. Outside a transaction the result
   * may be outdated when you get it.
   *
   * @example
   * ```ts
   * import type { Hold } from 'holdfast'
   * import type { SqliteGuard } from 'holdfast/fence'
   *
   * export function book(hold: Hold, guard: SqliteGuard, database: { exec(sql: string): unknown }) {
   *   database.exec('BEGIN IMMEDIATE')
   *   try {
   *     guard.check(hold)
   *     database.exec("INSERT INTO booking (seat) VALUES ('12a')")
   *     database.exec('COMMIT')
   *   } catch (error) {
   *     database.exec('ROLLBACK')
   *     throw error
   *   }
   * }
   * ```
   */
  check(hold: Fenced): void {
    runNow(planCheck(sqliteDialect, this.#table, hold), this.#run)
  }

  /**
   * SQL for your own statement. It contains the fence as a number, so there is no placeholder to
   * count. If the statement changed nothing, `explain` says why.
   *
   * @example
   * ```ts
   * import type { Hold } from 'holdfast'
   * import type { SqliteGuard } from 'holdfast/fence'
   *
   * export function addOne(hold: Hold, guard: SqliteGuard) {
   *   const fence = guard.sql(hold)
   *   return `UPDATE stock SET pieces = pieces + 1, ${fence.set} WHERE id = 42 AND ${fence.where}`
   * }
   * ```
   */
  sql(hold: Fenced | number, column = 'fence'): FenceSql {
    return fenceSql(sqliteDialect, hold, column)
  }

  /**
   * Why your own guarded statement changed nothing. Throws STALE_FENCE if the row has a newer
   * fence. Returns false if there is no such row, and true if your fence would pass: then another
   * part of your condition was not met.
   */
  explain(hold: Fenced | number, row: GuardedRow): boolean {
    return runNow(planRowFence(sqliteDialect, hold, row), this.#run) !== undefined
  }

  /** Creates the side table if it is missing. */
  createTable(): void {
    this.#run(tableStatement(sqliteDialect, this.#table))
  }
}
