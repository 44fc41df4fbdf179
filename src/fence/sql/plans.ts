import { HoldfastError, invalid } from '../../base/errors.js'
import { checkFenced, type Fenced, fenceOf, refuseStale } from '../fenced.js'
import { nameKey } from '../names.js'
import type { Dialect } from './dialect.js'
import {
  type GuardedRow,
  type GuardedUpdate,
  type GuardStatement,
  raiseStatement,
  registeredStatement,
  rowFenceStatement,
  updateStatement,
} from './statements.js'

/** What a driver returned for one statement. */
export interface StatementResult {
  readonly rows: readonly unknown[]
  /** How many rows it changed. */
  readonly changes: number
}

/**
 * The steps of a guarded write, for synchronous and asynchronous drivers alike: it yields
 * statements and receives their results.
 */
export type Plan<T> = Generator<GuardStatement, T, StatementResult>

/** A row may appear between the two statements, but not again and again. */
const MOST_ATTEMPTS = 3

/**
 * Writes the row if its fence is not newer than ours. The check is part of the UPDATE, so it is
 * atomic. Returns false if there is no such row.
 */
export function* planUpdate(dialect: Dialect, hold: Fenced | number, update: GuardedUpdate): Plan<boolean> {
  const fence = fenceOf(hold)
  const statement = updateStatement(dialect, update, fence)
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
    const { changes } = yield statement
    if (changes > 1)
      throw invalid(
        `The guarded update changed ${changes} rows of ${update.table}; \`where\` must name one row by its key`,
      )
    if (changes === 1) return true
    const newest = yield* planRowFence(dialect, hold, update)
    if (newest === undefined) return false
    // Not stale, not missing, and not counted: the row had these values already, the fence
    // included.
    if (dialect.mayCountChangesOnly && attempt > 1 && newest === fence) return true
  }
  throw unexpected(`The database does not update the row of ${update.table} although its fence is not newer`)
}

/**
 * The fence of the row, 0 if it has none yet, undefined if there is no row; throws if it is newer
 * than ours.
 */
export function* planRowFence(
  dialect: Dialect,
  hold: Fenced | number,
  row: GuardedRow,
): Plan<number | undefined> {
  const { rows } = yield rowFenceStatement(dialect, row)
  if (rows.length === 0) return undefined
  const newest = Math.max(...rows.map(readFence))
  refuseStale(hold, newest)
  return newest
}

/**
 * Raises the resource's fence in the side table, and then compares. Inside a transaction the first
 * step locks that row until the end, so a writer with another fence waits.
 */
export function* planCheck(dialect: Dialect, table: string, hold: Fenced): Plan<void> {
  const { resource, fence } = checkFenced(hold)
  const key = nameKey(resource)
  yield raiseStatement(dialect, table, key, fence)
  const { rows } = yield registeredStatement(dialect, table, key)
  const newest = rows.length === 0 ? 0 : readFence(rows[0])
  refuseStale(hold, newest)
  if (newest < fence) throw unexpected(`The table ${table} did not keep the fence of '${resource}'`)
}

/**
 * Drivers return 64-bit integers as numbers, bigints or text. An unreadable one must not let a
 * write pass.
 */
function readFence(row: unknown): number {
  const value = Object.values(Object(row))[0] as unknown
  if (value === null) return 0
  const isReadable = typeof value === 'number' || typeof value === 'bigint' || typeof value === 'string'
  const fence = isReadable && value !== '' ? Number(value) : Number.NaN
  if (Number.isNaN(fence))
    throw unexpected(
      `The fence column holds ${String(value)}, which is not a number; make it a 64-bit integer`,
    )
  return fence
}

function unexpected(message: string): HoldfastError {
  const advice = 'look for a trigger, a rule or a row security policy that interferes'
  return new HoldfastError('UNSUPPORTED', `${message}; ${advice}`)
}
