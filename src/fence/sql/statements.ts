import { types } from 'node:util'
import { invalid } from '../../base/errors.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import { type Dialect, quoteName, quoteTable } from './dialect.js'

/** One statement for a driver. */
export interface GuardStatement {
  readonly sql: string
  readonly values: readonly unknown[]
  /** Whether it returns rows. */
  readonly isRead: boolean
}

/** The row to write. */
export interface GuardedRow {
  /** The table, with or without its schema: `account`, `billing.account`. */
  table: string
  /**
   * The columns that identify one row, with their values: its primary key, or another unique key.
   * A value is a string, a number, a bigint, a boolean, null, a Date or a Uint8Array.
   */
  where: Readonly<Record<string, unknown>>
  /** The column with the newest fence: a 64-bit integer that may be NULL. Default `fence`. */
  column?: string | undefined
}

/** A guarded change of one row. */
export interface GuardedUpdate extends GuardedRow {
  /** The columns to change, with their new values. The fence is added. */
  set: Readonly<Record<string, unknown>>
}

const ROW: OptionNames<GuardedUpdate> = { table: true, where: true, column: true, set: true }

/** Builds a statement and collects the values of its placeholders. */
class StatementBuilder {
  readonly values: unknown[] = []
  readonly dialect: Dialect

  constructor(dialect: Dialect) {
    this.dialect = dialect
  }

  value(value: unknown): string {
    this.values.push(value)
    return this.dialect.placeholder(this.values.length)
  }

  name(column: string): string {
    return quoteName(this.dialect, column)
  }

  finish(sql: string, isRead: boolean): GuardStatement {
    return { sql, values: this.values, isRead }
  }
}

export function updateStatement(dialect: Dialect, update: GuardedUpdate, fence: number): GuardStatement {
  const builder = new StatementBuilder(dialect)
  const column = update.column ?? 'fence'
  const changes = Object.entries(update.set)
  if (changes.some(([name]) => name === column))
    throw invalid(`'${column}' is set to the fence of the hold; leave it out of the other columns`)
  const set = [...changes, [column, fence] as const]
    .map(([name, value]) => `${builder.name(name)} = ${builder.value(defined(name, value))}`)
    .join(', ')
  const where = whereRow(builder, update)
  const guard = `(${builder.name(column)} IS NULL OR ${builder.name(column)} <= ${builder.value(fence)})`
  return builder.finish(
    `UPDATE ${quoteTable(dialect, update.table)} SET ${set} WHERE ${where} AND ${guard}`,
    false,
  )
}

export function rowFenceStatement(dialect: Dialect, row: GuardedRow): GuardStatement {
  const builder = new StatementBuilder(dialect)
  const column = builder.name(row.column ?? 'fence')
  const sql = `SELECT ${column} FROM ${quoteTable(dialect, row.table)} WHERE ${whereRow(builder, row)}`
  return builder.finish(sql + dialect.currentRead, true)
}

/** Raises the fence in the side table; a greater one stays. */
export function raiseStatement(dialect: Dialect, table: string, key: string, fence: number): GuardStatement {
  const builder = new StatementBuilder(dialect)
  // MySQL has no alias for the table of an INSERT, and needs none.
  const alias = dialect.name === 'mysql' ? '' : ' AS known'
  const values = `${builder.value(key)}, ${builder.value(fence)}`
  const end = dialect.onConflict(builder.value(fence))
  const sql = `INSERT INTO ${quoteTable(dialect, table)}${alias} (resource, fence) VALUES (${values}) ${end}`
  return builder.finish(sql, false)
}

export function registeredStatement(dialect: Dialect, table: string, key: string): GuardStatement {
  return rowFenceStatement(dialect, { table, where: { resource: key } })
}

export function tableStatement(dialect: Dialect, table: string): GuardStatement {
  const sql = `CREATE TABLE IF NOT EXISTS ${quoteTable(dialect, table)} (${dialect.columns})`
  return { sql, values: [], isRead: false }
}

function whereRow(builder: StatementBuilder, row: GuardedRow): string {
  const { where } = checkOptions<GuardedRow>(row, ROW, "{ table: 'account', where: { id: 7 } }")
  const columns = Object.entries(where)
  if (columns.length === 0) throw invalid('`where` is empty; give the columns that identify the row to write')
  const conditions = columns.map(([name, value]) =>
    value === null
      ? `${builder.name(name)} IS NULL`
      : `${builder.name(name)} = ${builder.value(single(name, defined(name, value)))}`,
  )
  return conditions.join(' AND ')
}

/**
 * Some drivers take undefined as NULL. A condition with NULL is never true, so the row would seem
 * missing.
 */
function defined(name: string, value: unknown): unknown {
  if (value === undefined) throw invalid(`'${name}' is undefined; give a value, or null`)
  return value
}

/**
 * Drivers of MySQL expand other objects into SQL: `{ id: { id: 1 } }` becomes ``id = `id` = 1``,
 * which may be true for every row.
 */
function single(name: string, value: unknown): unknown {
  const isSingle =
    ['string', 'number', 'bigint', 'boolean'].includes(typeof value) ||
    types.isDate(value) ||
    types.isUint8Array(value)
  if (isSingle) return value
  throw invalid(
    `'${name}' in \`where\` must be a string, a number, a bigint, a boolean, null, a Date or a Uint8Array`,
  )
}
