import { invalid } from '../../base/errors.js'
import { checkOptions } from '../../base/options.js'
import {
  type MysqlClient,
  mysqlRunner,
  type PgClient,
  type PostgresJsClient,
  postgresRunner,
  type SqliteClient,
} from './clients.js'
import { mysqlDialect, postgresDialect } from './dialect.js'
import { SqlGuard, type SqlGuardOptions } from './guard.js'
import { SqliteGuard } from './sqlite-guard.js'

/**
 * Guarded writes in SQLite, through a database that you opened with `node:sqlite`, `better-sqlite3`
 * or `libsql`.
 *
 * @example
 * ```ts
 * import type { Hold } from 'holdfast'
 * import { type SqliteClient, sqliteGuard } from 'holdfast/fence'
 *
 * export function rename(hold: Hold, database: SqliteClient, name: string) {
 *   return sqliteGuard(database).update(hold, { table: 'account', set: { name }, where: { id: 7 } })
 * }
 * ```
 */
export function sqliteGuard(database: SqliteClient, options: SqlGuardOptions = {}): SqliteGuard {
  checkClient(database, 'prepare', 'an open database of node:sqlite, better-sqlite3 or libsql')
  return new SqliteGuard(database, checked(options))
}

/**
 * Guarded writes in PostgreSQL, through a client of `pg` or `postgres`. For a transaction, give the
 * client that is in it, not the pool.
 *
 * @example
 * ```ts
 * import type { Hold } from 'holdfast'
 * import { type PgClient, postgresGuard } from 'holdfast/fence'
 *
 * export function rename(hold: Hold, client: PgClient, name: string) {
 *   return postgresGuard(client).update(hold, { table: 'account', set: { name }, where: { id: 7 } })
 * }
 * ```
 */
export function postgresGuard(client: PgClient | PostgresJsClient, options: SqlGuardOptions = {}): SqlGuard {
  checkClient(client, client && 'unsafe' in client ? 'unsafe' : 'query', 'a client of pg or postgres')
  return new SqlGuard(postgresDialect, postgresRunner(client), checked(options))
}

/**
 * Guarded writes in MySQL or MariaDB (InnoDB), through a connection of `mysql2/promise` or
 * `mariadb`. For a transaction, give the connection that is in it, not the pool.
 *
 * @example
 * ```ts
 * import type { Hold } from 'holdfast'
 * import { type MysqlClient, mysqlGuard } from 'holdfast/fence'
 *
 * export function rename(hold: Hold, connection: MysqlClient, name: string) {
 *   return mysqlGuard(connection).update(hold, { table: 'account', set: { name }, where: { id: 7 } })
 * }
 * ```
 */
export function mysqlGuard(connection: MysqlClient, options: SqlGuardOptions = {}): SqlGuard {
  checkClient(connection, 'query', 'a connection of mysql2/promise or mariadb')
  if ('promise' in connection)
    throw invalid(
      "This connection of mysql2 takes callbacks; import it from 'mysql2/promise', or give connection.promise()",
    )
  return new SqlGuard(mysqlDialect, mysqlRunner(connection), checked(options))
}

function checkClient(client: unknown, method: string, what: string): void {
  const found = (client as Record<string, unknown> | null | undefined)?.[method]
  if (typeof found !== 'function') throw invalid(`The guard needs ${what}`)
}

function checked(options: SqlGuardOptions): SqlGuardOptions {
  return checkOptions(options, { table: true }, "{ table: 'fences' }")
}
