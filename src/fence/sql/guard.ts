import { type Fenced, type FenceRegister, fenceOf } from '../fenced.js'
import { runLater, type StatementRunner } from './clients.js'
import { type Dialect, quoteName } from './dialect.js'
import { planCheck, planRowFence, planUpdate } from './plans.js'
import { type GuardedRow, type GuardedUpdate, tableStatement } from './statements.js'

export const SIDE_TABLE = 'holdfast_fence'

/** The options of the SQL guards. */
export interface SqlGuardOptions {
  /** The side table that `check` uses, with or without its schema. Default `holdfast_fence`. */
  table?: string | undefined
}

/** Two pieces of SQL for your own statement. */
export interface FenceSql {
  /** For its SET: stores the fence. */
  readonly set: string
  /** For its WHERE: true if no newer fence is stored. */
  readonly where: string
}

/**
 * Guarded writes through your client, inside its transaction if it has one. Errors of the driver
 * stay as they are. Made by `postgresGuard` and `mysqlGuard`; it has no state, so make one wherever
 * you have a client.
 */
export class SqlGuard implements FenceRegister {
  readonly #dialect: Dialect
  readonly #run: StatementRunner
  readonly #table: string

  /** @internal */
  constructor(dialect: Dialect, run: StatementRunner, options: SqlGuardOptions) {
    this.#dialect = dialect
    this.#run = run
    this.#table = options.table ?? SIDE_TABLE
  }

  /**
   * Updates one row. Throws STALE_FENCE if its fence column has a newer fence. NULL means never
   * written. Resolves with false if there is no such row.
   *
   * @example
   * ```ts
   * import type { Hold } from 'holdfast'
   * import type { SqlGuard } from 'holdfast/fence'
   *
   * export async function pay(hold: Hold, guard: SqlGuard) {
   *   const isThere = await guard.update(hold, { table: 'orders', set: { state: 'paid' }, where: { id: 42 } })
   *   if (!isThere) throw new Error('no such order')
   * }
   * ```
   */
  update(hold: Fenced | number, update: GuardedUpdate): Promise<boolean> {
    return runLater(planUpdate(this.#dialect, hold, update), this.#run)
  }

  /**
   * Checks the fence against the side table, and remembers it there. Throws STALE_FENCE if a newer
   * one was seen. Call it first in the transaction that writes, on the same connection: writers
   * with another fence wait for its end. Outside a transaction the result may be outdated when you
   * get it.
   *
   * @example
   * ```ts
   * import type { Hold } from 'holdfast'
   * import { type PgClient, postgresGuard } from 'holdfast/fence'
   *
   * export async function book(hold: Hold, client: PgClient) {
   *   await client.query('BEGIN', [])
   *   try {
   *     await postgresGuard(client).check(hold)
   *     await client.query('INSERT INTO booking (seat) VALUES ($1)', ['12a'])
   *     await client.query('COMMIT', [])
   *   } catch (error) {
   *     await client.query('ROLLBACK', [])
   *     throw error
   *   }
   * }
   * ```
   */
  check(hold: Fenced): Promise<void> {
    return runLater(planCheck(this.#dialect, this.#table, hold), this.#run)
  }

  /**
   * SQL for your own statement. It contains the fence as a number, so there is no placeholder to
   * count. If the statement changed nothing, `explain` says why.
   *
   * @example
   * ```ts
   * import type { Hold } from 'holdfast'
   * import { type PgClient, postgresGuard } from 'holdfast/fence'
   *
   * export async function addOne(hold: Hold, client: PgClient) {
   *   const guard = postgresGuard(client)
   *   const fence = guard.sql(hold)
   *   const text = `UPDATE stock SET pieces = pieces + 1, ${fence.set} WHERE id = $1 AND ${fence.where}`
   *   const { rowCount } = await client.query(text, [42])
   *   if (rowCount === 0) await guard.explain(hold, { table: 'stock', where: { id: 42 } })
   * }
   * ```
   */
  sql(hold: Fenced | number, column = 'fence'): FenceSql {
    return fenceSql(this.#dialect, hold, column)
  }

  /**
   * Why your own guarded statement changed nothing. Throws STALE_FENCE if the row has a newer
   * fence. Resolves with false if there is no such row, and with true if your fence would pass:
   * then another part of your condition was not met.
   */
  async explain(hold: Fenced | number, row: GuardedRow): Promise<boolean> {
    return (await runLater(planRowFence(this.#dialect, hold, row), this.#run)) !== undefined
  }

  /**
   * Creates the side table if it is missing. In MySQL this commits: call it when you set up the
   * database.
   */
  async createTable(): Promise<void> {
    await this.#run(tableStatement(this.#dialect, this.#table))
  }
}

export function fenceSql(dialect: Dialect, hold: Fenced | number, column: string): FenceSql {
  const fence = fenceOf(hold)
  const name = quoteName(dialect, column)
  return { set: `${name} = ${fence}`, where: `(${name} IS NULL OR ${name} <= ${fence})` }
}
