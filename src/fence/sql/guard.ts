import { type Fenced, type FenceRegister, fenceOf } from '../fenced.js'
import { type Runner, runLater } from './clients.js'
import { type Dialect, quoteName } from './dialect.js'
import { planCheck, planRowFence, planUpdate } from './plans.js'
import { type GuardedRow, type GuardedUpdate, tableStatement } from './statements.js'

export const SIDE_TABLE = 'holdfast_fence'

export interface SqlGuardOptions {
  /** The side table that `check` uses, with its schema or without. Otherwise `holdfast_fence`. */
  table?: string | undefined
}

/** Two pieces of SQL for a statement of your own. */
export interface FenceSql {
  /** For its SET: stores the fence. */
  readonly set: string
  /** For its WHERE: true as long as no newer fence is stored. */
  readonly where: string
}

/**
 * Guarded writes through a client of yours, in its transaction if it is in one. Errors of the driver pass through unchanged.
 * Made by `postgresGuard` and `mysqlGuard`; it keeps no state, so make one wherever you have a client.
 */
export class SqlGuard implements FenceRegister {
  readonly #dialect: Dialect
  readonly #run: Runner
  readonly #table: string

  /** @internal */
  constructor(dialect: Dialect, run: Runner, options: SqlGuardOptions) {
    this.#dialect = dialect
    this.#run = run
    this.#table = options.table ?? SIDE_TABLE
  }

  /**
   * Updates one row, unless its fence column has a newer fence: then STALE_FENCE. A NULL there counts as "never written".
   * Resolves with false if there is no such row.
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
   * Checks the fence against the side table, and remembers it there: STALE_FENCE if a newer one was here. Call it first in the
   * transaction that then writes, on the same connection: until its end nobody with another fence gets past. Outside a transaction
   * it only tells what was true a moment ago.
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
   * SQL for a statement of your own. The fence stands in it as a number, so there is no placeholder to count.
   * When the statement changed nothing, ask `explain` why.
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
   * Why a guarded statement of your own changed nothing: throws STALE_FENCE if the row has a newer fence, resolves with false if there
   * is no such row, and with true if it is there and your fence would pass: then something else in your condition was not met.
   */
  async explain(hold: Fenced | number, row: GuardedRow): Promise<boolean> {
    return (await runLater(planRowFence(this.#dialect, hold, row), this.#run)) !== undefined
  }

  /** Makes the side table if it is missing. MySQL ends a transaction with it: call it when you set up the database. */
  async createTable(): Promise<void> {
    await this.#run(tableStatement(this.#dialect, this.#table))
  }
}

export function fenceSql(dialect: Dialect, hold: Fenced | number, column: string): FenceSql {
  const fence = fenceOf(hold)
  const name = quoteName(dialect, column)
  return { set: `${name} = ${fence}`, where: `(${name} IS NULL OR ${name} <= ${fence})` }
}
