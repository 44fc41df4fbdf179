import { invalid } from '../../base/errors.js'

/** The differences between the databases. The rest of a guarded write is the same text for all. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres' | 'mysql'
  readonly quote: '"' | '`'
  /** The placeholder of the value with this number; the first is 1. */
  placeholder(number: number): string
  /**
   * The end of an INSERT into the side table, for a row that exists. `value` is the new fence
   * again.
   */
  onConflict(value: string): string
  /** The end of a SELECT that must see the newest rows, not the snapshot of its transaction. */
  readonly currentRead: string
  /** Whether a driver can be configured to count only rows whose values changed. */
  readonly mayCountChangesOnly: boolean
  /** The columns of the side table. */
  readonly columns: string
}

export const sqliteDialect: Dialect = {
  name: 'sqlite',
  quote: '"',
  placeholder: () => '?',
  onConflict: (value) => `ON CONFLICT (resource) DO UPDATE SET fence = max(known.fence, ${value})`,
  currentRead: '',
  mayCountChangesOnly: false,
  columns: 'resource TEXT NOT NULL PRIMARY KEY, fence INTEGER NOT NULL',
}

/**
 * In READ COMMITTED an UPDATE waits for the row and then checks its condition again; in the
 * stricter levels it fails with 40001. Both refuse a stale write.
 * https://www.postgresql.org/docs/current/transaction-iso.html
 */
export const postgresDialect: Dialect = {
  name: 'postgres',
  quote: '"',
  placeholder: (number) => `$${number}`,
  onConflict: (value) => `ON CONFLICT (resource) DO UPDATE SET fence = greatest(known.fence, ${value})`,
  currentRead: '',
  mayCountChangesOnly: false,
  columns: 'resource varchar(255) COLLATE "C" NOT NULL PRIMARY KEY, fence bigint NOT NULL',
}

/**
 * In REPEATABLE READ, the default, an UPDATE works on the newest rows but a plain SELECT shows old
 * ones: hence FOR UPDATE. MariaDB has no alias for the new row and MySQL deprecates VALUES(): hence
 * the fence as a second value.
 * https://dev.mysql.com/doc/refman/8.4/en/innodb-consistent-read.html
 */
export const mysqlDialect: Dialect = {
  name: 'mysql',
  quote: '`',
  placeholder: () => '?',
  onConflict: (value) => `ON DUPLICATE KEY UPDATE fence = greatest(fence, ${value})`,
  currentRead: ' FOR UPDATE',
  mayCountChangesOnly: true,
  columns:
    'resource VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, fence BIGINT NOT NULL',
}

/** The name of a column, exactly as given. */
export function quoteName(dialect: Dialect, name: unknown): string {
  if (typeof name !== 'string' || name === '' || name.includes('\0'))
    throw invalid(`The name of a table or column must be a non-empty string, not ${JSON.stringify(name)}`)
  const { quote } = dialect
  return `${quote}${name.replaceAll(quote, quote + quote)}${quote}`
}

/** The name of a table, with its schema or without: `account`, `billing.account`. */
export function quoteTable(dialect: Dialect, name: unknown): string {
  if (typeof name !== 'string') return quoteName(dialect, name)
  return name
    .split('.')
    .map((part) => quoteName(dialect, part))
    .join('.')
}
