import { type Duration, toMs } from '../../base/duration.js'
import { type Env, systemEnv } from '../../base/env.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import type { Capabilities, ClientContext, Connection, Store } from '../../contract/store.js'
import { mysqlSessionLock, type SessionLock } from '../../database-locks/mysql/session-lock.js'
import { type MysqlSqlTransaction, mysqlTransactionLock } from '../../database-locks/mysql/transactions.js'
import type { TransactionLock } from '../../database-locks/transactions/lock.js'
import { checkConnections, PoolCache, refuseUrlOptions } from '../shared/pools.js'
import { checkPackage, type PackageName, parseAddress } from './address.js'
import { MysqlBackend, type MysqlBackendOptions } from './backend.js'
import { MysqlConnection } from './connection.js'
import { MysqlDriver, type MysqlPool } from './driver.js'
import { openAddress } from './packages.js'
import { namesOf } from './sql/names.js'

export type { SessionHold, SessionLock } from '../../database-locks/mysql/session-lock.js'
export type { MysqlSqlTransaction as SqlTransaction } from '../../database-locks/mysql/transactions.js'
export type { SessionLockOptions } from '../../database-locks/sessions/acquire.js'
export type { TransactionLock } from '../../database-locks/transactions/lock.js'
export type { TransactionLockOptions } from '../../database-locks/transactions/options.js'
export type { MysqlPool } from './driver.js'

/** The options of `mysql`. Those in code override those in the URL. */
export interface MysqlOptions {
  /** The prefix of all tables and routines. Default: `holdfast`. */
  prefix?: string | undefined
  /**
   * With a URL: which package to use. Default: `mysql2` or `mariadb`, the first that is installed.
   */
  driver?: PackageName | undefined
  /** With a URL: the most connections. Default: 5. */
  connections?: number | undefined
  /** With a URL: the TLS options of the driver (its `ssl`). */
  tls?: object | undefined
  /**
   * false: never create tables or routines, because you run what `holdfast schema mysql` prints.
   */
  createSchema?: boolean | undefined
  /**
   * How long an unused resource's counter is kept, so that a server clock set back by less cannot
   * lower a fence. Default: a minute.
   */
  retention?: Duration | undefined
  /** A clock other than the server's, for tests. */
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
 * A store on MySQL 8 or MariaDB 10.6 and later, by a URL or by your own pool. Holdfast closes only
 * what it has opened. It creates its tables and routines on first use.
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
  return new MysqlStore(backendOf(urlOrPool, options))
}

/**
 * Removes what is no longer used: lapsed claims, empty lines, ended states. Clients do this about
 * once a minute; call it from a scheduled job where clients come and go.
 *
 * @example
 * ```ts
 * import { sweep } from 'holdfast/mysql'
 *
 * await sweep('mysql://app:secret@localhost:3306/app')
 * ```
 */
export function sweep(urlOrPool: string | MysqlPool, options: MysqlOptions = {}): Promise<void> {
  return backendOf(urlOrPool, options).sweep()
}

function backendOf(urlOrPool: string | MysqlPool, options: MysqlOptions): MysqlBackend {
  checkOptions(options, MYSQL_OPTIONS, "{ prefix: 'locks' }")
  return typeof urlOrPool === 'string' ? backendOfUrl(urlOrPool, options) : backendOfPool(urlOrPool, options)
}

function backendOfUrl(url: string, options: MysqlOptions): MysqlBackend {
  const address = parseAddress(url)
  const driver = options.driver === undefined ? address.driver : checkPackage(options.driver)
  const connections = checkConnections(options.connections ?? address.connections ?? 5)
  const pool = { address: { ...address, driver }, tls: options.tls, connections }
  return new MysqlBackend({
    openDriver: () => openAddress(pool),
    ...settingsOf({ ...options, prefix: options.prefix ?? address.prefix }),
  })
}

/**
 * The row lock of a transaction of your own, for work that is all in this database: work and
 * release commit together, and the server frees the lock when the client dies. It has no lease,
 * takes a connection of the pool while it waits and works, and does not exclude a mutex of the same
 * name.
 * `Tx` is the connection of your driver: `PoolConnection` of `mysql2/promise`, or of `mariadb`.
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
 * Locks of GET_LOCK, shared with programs that use it already. Up to four connections of the pool
 * hold them and wait for them in the server's queue. A lock is lost with its connection;
 * `hold.signal` tells. There is no lease, and a mutex of the same name is not excluded.
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

/** However many store values are made of a pool, their clients tell each other directly. */
const backends = new PoolCache<MysqlBackend>()

function backendOfPool(pool: MysqlPool, options: MysqlOptions): MysqlBackend {
  refuseUrlOptions(options)
  const driver = new MysqlDriver(pool, false)
  const settings = settingsOf(options)
  const make = (): MysqlBackend => new MysqlBackend({ openDriver: async () => driver, ...settings })
  // A backend with a clock of its own is not shared.
  if (options.env) return make()
  return backends.get(pool, [settings.names.line, settings.createSchema, settings.retentionMs], make)
}

function settingsOf(options: MysqlOptions): Omit<MysqlBackendOptions, 'openDriver'> {
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
    // Their lines stay locked until all are done: for some tens of milliseconds.
    maxBeats: 200,
    // The poller does that, without writing anything.
    askNextEveryMs: null,
    takesFences: true,
  }
  readonly #backend: MysqlBackend

  constructor(backend: MysqlBackend) {
    this.#backend = backend
  }

  connect(client: ClientContext): Connection {
    return new MysqlConnection(this.#backend, client)
  }
}
