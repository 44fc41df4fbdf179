import { type Duration, toMs } from '../../base/duration.js'
import { type Env, systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import type { Capabilities, ClientContext, Connection, Store } from '../../contract/store.js'
import { mysqlSessionLock, type SessionLock } from '../../database-locks/mysql/session-lock.js'
import { type MysqlSqlTransaction, mysqlTransactionLock } from '../../database-locks/mysql/transactions.js'
import type { TransactionLock } from '../../database-locks/transactions/lock.js'
import { checkPackage, type PackageName, parseAddress } from './address.js'
import { MysqlConnection } from './connection.js'
import { Driver, type MysqlPool } from './driver.js'
import { openAddress } from './packages.js'
import { namesOf } from './sql/names.js'
import { MysqlUser, type MysqlUserOptions } from './user.js'

export type { SessionHold, SessionLock } from '../../database-locks/mysql/session-lock.js'
export type { MysqlSqlTransaction as SqlTransaction } from '../../database-locks/mysql/transactions.js'
export type { SessionLockOptions } from '../../database-locks/sessions/acquire.js'
export type { TransactionLock } from '../../database-locks/transactions/lock.js'
export type { TransactionLockOptions } from '../../database-locks/transactions/options.js'
export type { MysqlPool } from './driver.js'

export interface MysqlOptions {
  /** What the names of all tables and routines begin with. `holdfast` unless told. */
  prefix?: string | undefined
  /** With a URL: which package to use. Otherwise `mysql2` or `mariadb`, whichever is installed. */
  driver?: PackageName | undefined
  /** With a URL: how many connections at most. 5 unless told. */
  connections?: number | undefined
  /** With a URL: TLS options, passed on to the package as they are (its option `ssl`). */
  tls?: object | undefined
  /** false: never create tables or routines; somebody has run what `holdfast schema mysql` prints. */
  createSchema?: boolean | undefined
  /** How long an unused resource's counter is kept, so that a server clock set back by less cannot lower a fence. A minute unless told. */
  retention?: Duration | undefined
  /** Time other than the server's, for tests. */
  env?: Env | undefined
}

const MYSQL_OPTIONS: OptionNames<MysqlOptions> = {
  prefix: true,
  driver: true,
  connections: true,
  tls: true,
  createSchema: true,
  retention: true,
  env: true,
}
const SCHEMA_OPTIONS = { prefix: true, createSchema: true } as const

/**
 * A store on MySQL 8 or MariaDB 10.6 and later: by a URL, or by the pool that you have, which stays yours: Holdfast closes only what it has opened.
 * The tables and routines that it needs are made on first use.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { mysql } from 'holdfast/mysql'
 *
 * const locks = new Holdfast(mysql('mysql://app:secret@localhost:3306/app'))
 * await locks.mutex('report').run(async () => console.log('the only one in the fleet'))
 * await locks.close()
 * ```
 */
export function mysql(urlOrPool: string | MysqlPool, options: MysqlOptions = {}): Store {
  return new MysqlStore(userOf(urlOrPool, options))
}

/**
 * Removes what nobody uses any more: lapsed claims, lines that nobody is in, ended states. The clients do it by themselves about once a minute; this is for a
 * scheduled job, or for a moment of your choice.
 *
 * @example
 * ```ts
 * import { sweep } from 'holdfast/mysql'
 *
 * await sweep('mysql://app:secret@localhost:3306/app')
 * ```
 */
export function sweep(urlOrPool: string | MysqlPool, options: MysqlOptions = {}): Promise<void> {
  return userOf(urlOrPool, options).sweep()
}

function userOf(urlOrPool: string | MysqlPool, options: MysqlOptions): MysqlUser {
  checkOptions(options, MYSQL_OPTIONS, "{ prefix: 'locks' }")
  return typeof urlOrPool === 'string' ? userOfUrl(urlOrPool, options) : userOfPool(urlOrPool, options)
}

function userOfUrl(url: string, options: MysqlOptions): MysqlUser {
  const address = parseAddress(url)
  const driver = options.driver === undefined ? address.driver : checkPackage(options.driver)
  const connections = checkConnections(options.connections ?? address.connections ?? 5)
  const pool = { address: { ...address, driver }, tls: options.tls, connections }
  return new MysqlUser({
    openDriver: () => openAddress(pool),
    ...settingsOf({ ...options, prefix: options.prefix ?? address.prefix }),
  })
}

/**
 * The row lock of a transaction of your own, for work that is all in this database: work and release commit together, and the server frees the lock when the
 * client dies. It has no lease, takes a connection of the pool while it waits and works, and does not exclude a mutex of the same name.
 * `Tx` is what your driver calls a connection: `PoolConnection` of `mysql2/promise`, or of `mariadb`.
 *
 * @example
 * ```ts
 * import { transactionLock } from 'holdfast/mysql'
 * import { createPool, type PoolConnection } from 'mysql2/promise'
 *
 * const pool = createPool('mysql://app:secret@localhost:3306/app')
 * await transactionLock<PoolConnection>(pool).run('stock:7', async (tx) => {
 *   await tx.query('UPDATE stock SET pieces = pieces - 1 WHERE id = ?', [7])
 * })
 * await pool.end()
 * ```
 */
export function transactionLock<Tx = MysqlSqlTransaction>(
  pool: MysqlPool,
  options: Pick<MysqlOptions, 'prefix' | 'createSchema'> = {},
): TransactionLock<Tx> {
  checkOptions(options, SCHEMA_OPTIONS, "{ prefix: 'locks' }")
  return mysqlTransactionLock<Tx>(pool, namesOf(options.prefix), options.createSchema ?? true)
}

/**
 * Locks of GET_LOCK, shared with programs that use it already. Up to four connections of the pool hold them and wait for them in the server's queue. A lock is lost
 * with its connection; `hold.signal` tells. There is no lease, and a mutex of the same name is not excluded.
 *
 * @example
 * ```ts
 * import { sessionLock } from 'holdfast/mysql'
 * import { createPool } from 'mysql2/promise'
 *
 * const pool = createPool('mysql://app:secret@localhost:3306/app')
 * await sessionLock(pool).run('nightly-report', async (hold) => {
 *   console.log('one in the whole fleet, with fence', hold.fence)
 * })
 * await pool.end()
 * ```
 */
export function sessionLock(
  pool: MysqlPool,
  options: Pick<MysqlOptions, 'prefix' | 'createSchema'> = {},
): SessionLock {
  checkOptions(options, SCHEMA_OPTIONS, "{ prefix: 'locks' }")
  return mysqlSessionLock(pool, namesOf(options.prefix), options.createSchema ?? true)
}

/** The users of each pool, by their settings: however many store values are made of a pool, its clients tell each other directly. */
const users = new WeakMap<object, Map<string, MysqlUser>>()

function userOfPool(pool: MysqlPool, options: MysqlOptions): MysqlUser {
  for (const name of ['driver', 'connections', 'tls'] as const)
    if (options[name] !== undefined)
      throw invalid(`${name} says how to open a URL; a pool of yours is used as it is`)
  const driver = new Driver(pool, false)
  const settings = settingsOf(options)
  const make = (): MysqlUser => new MysqlUser({ openDriver: async () => driver, ...settings })
  // Whoever brings time along gets a user of its own.
  if (options.env) return make()
  const known = users.get(pool) ?? new Map<string, MysqlUser>()
  users.set(pool, known)
  const key = JSON.stringify([settings.names.line, settings.createSchema, settings.retentionMs])
  const user = known.get(key) ?? make()
  known.set(key, user)
  return user
}

function settingsOf(options: MysqlOptions): Omit<MysqlUserOptions, 'openDriver'> {
  return {
    names: namesOf(options.prefix),
    createSchema: options.createSchema ?? true,
    env: options.env ?? systemEnv,
    clock: options.env ?? null,
    retentionMs: Math.ceil(toMs(options.retention ?? '1m', { name: 'retention', minMs: 1000 })),
  }
}

class MysqlStore implements Store {
  readonly name = 'mysql'
  readonly capabilities: Capabilities = {
    perHoldLease: true,
    // So many take some tens of milliseconds, for which their lines are locked.
    maxBeats: 200,
    // The lookout does that, without writing anything.
    askNextEveryMs: null,
  }
  readonly #user: MysqlUser

  constructor(user: MysqlUser) {
    this.#user = user
  }

  connect(client: ClientContext): Connection {
    return new MysqlConnection(this.#user, client)
  }
}

function checkConnections(connections: unknown): number {
  if (!Number.isInteger(connections) || (connections as number) < 1)
    throw invalid(`connections is ${String(connections)}, but must be a whole number from 1 on`)
  return connections as number
}
