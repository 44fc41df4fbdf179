import { invalid } from '../../base/errors.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import { type Dialect, quoteName, quoteTable } from './dialect.js'

/** One statement for a driver. */
export interface Statement {
  readonly sql: string
  readonly values: readonly unknown[]
  /** Whether it answers with rows. */
  readonly isRead: boolean
}

/** The row that is to be written. */
export interface GuardedRow {
  /** The table, with its schema or without: `account`, `billing.account`. */
  table: string
  /** The columns that name one row, with their values: its primary key, or another unique one. */
  where: Readonly<Record<string, unknown>>
  /** The column that remembers the newest fence: a 64-bit integer that may be NULL. Otherwise `fence`. */
  column?: string | undefined
}

export interface GuardedUpdate extends GuardedRow {
  /** The columns to change, with their new values. The fence is set besides. */
  set: Readonly<Record<string, unknown>>
}

const ROW: OptionNames<GuardedUpdate> = { table: true, where: true, column: true, set: true }

/** A statement in the making: collects the values behind its placeholders. */
class Draft {
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

  finish(sql: string, isRead: boolean): Statement {
    return { sql, values: this.values, isRead }
  }
}

export function updateStatement(dialect: Dialect, update: GuardedUpdate, fence: number): Statement {
  const draft = new Draft(dialect)
  const column = update.column ?? 'fence'
  const changes = Object.entries(update.set)
  if (changes.some(([name]) => name === column))
    throw invalid(`'${column}' is set to the fence of the hold; leave it out of the other columns`)
  const set = [...changes, [column, fence] as const]
    .map(([name, value]) => `${draft.name(name)} = ${draft.value(defined(name, value))}`)
    .join(', ')
  const where = whereRow(draft, update)
  const guard = `(${draft.name(column)} IS NULL OR ${draft.name(column)} <= ${draft.value(fence)})`
  return draft.finish(
    `UPDATE ${quoteTable(dialect, update.table)} SET ${set} WHERE ${where} AND ${guard}`,
    false,
  )
}

/** Reads the fence of a row. */
export function rowFenceStatement(dialect: Dialect, row: GuardedRow): Statement {
  const draft = new Draft(dialect)
  const column = draft.name(row.column ?? 'fence')
  const sql = `SELECT ${column} FROM ${quoteTable(dialect, row.table)} WHERE ${whereRow(draft, row)}`
  return draft.finish(sql + dialect.currentRead, true)
}

/** Puts a fence into the side table, unless a greater one is there. */
export function raiseStatement(dialect: Dialect, table: string, key: string, fence: number): Statement {
  const draft = new Draft(dialect)
  // MySQL knows no alias for the table of an INSERT, and needs none.
  const alias = dialect.name === 'mysql' ? '' : ' AS known'
  const values = `${draft.value(key)}, ${draft.value(fence)}`
  const end = dialect.onConflict(draft.value(fence))
  const sql = `INSERT INTO ${quoteTable(dialect, table)}${alias} (resource, fence) VALUES (${values}) ${end}`
  return draft.finish(sql, false)
}

/** Reads what the side table has. */
export function registeredStatement(dialect: Dialect, table: string, key: string): Statement {
  return rowFenceStatement(dialect, { table, where: { resource: key } })
}

export function tableStatement(dialect: Dialect, table: string): Statement {
  const sql = `CREATE TABLE IF NOT EXISTS ${quoteTable(dialect, table)} (${dialect.columns})`
  return { sql, values: [], isRead: false }
}

function whereRow(draft: Draft, row: GuardedRow): string {
  const { where } = checkOptions<GuardedRow>(row, ROW, "{ table: 'account', where: { id: 7 } }")
  const columns = Object.entries(where)
  if (columns.length === 0) throw invalid('`where` is empty; give the columns that name the one row to write')
  const conditions = columns.map(([name, value]) =>
    value === null
      ? `${draft.name(name)} IS NULL`
      : `${draft.name(name)} = ${draft.value(defined(name, value))}`,
  )
  return conditions.join(' AND ')
}

/** Some drivers take undefined for NULL, and a condition with NULL is never true: the row would seem to be missing. */
function defined(name: string, value: unknown): unknown {
  if (value === undefined) throw invalid(`'${name}' is undefined; give a value, or null`)
  return value
}
