import { type Duration, toMs } from '../../base/duration.js'
import { type Env, systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import type { Store } from '../../contract/store.js'
import { type AdvisoryLocks, advisoryLocks } from '../../database-locks/postgres/advisory.js'
import {
  type PostgresSqlTransaction,
  postgresTransactionLock,
} from '../../database-locks/postgres/transactions.js'
import type { TransactionLock } from '../../database-locks/transactions/lock.js'
import { readUrl } from './address.js'
import type { Driver } from './driver.js'
import { type Address, checkPackage, openAddress, type PackageName } from './packages.js'
import { isPgPool, PgDriver } from './pg.js'
import { isPostgresJs, PostgresJsDriver } from './postgres-js.js'
import { SplitDriver } from './split-driver.js'
import { PostgresStore } from './store.js'
import { PostgresUser, type PostgresUserOptions } from './user.js'

export type { AdvisoryHold, AdvisoryLocks } from '../../database-locks/postgres/advisory.js'
export type { PostgresSqlTransaction as SqlTransaction } from '../../database-locks/postgres/transactions.js'
export type { SessionLockOptions as AdvisoryOptions } from '../../database-locks/sessions/acquire.js'
export type { TransactionLock } from '../../database-locks/transactions/lock.js'
export type { TransactionLockOptions } from '../../database-locks/transactions/options.js'

/** A pool that you have. Told by what it can do, as loosely as the types of all versions need. */
export type PostgresPool = PgPoolLike | PostgresJsLike

/** What tells a `Pool` of `pg` 8. */
export interface PgPoolLike {
  /** Takes a connection out of the pool. */
  connect(...args: never[]): unknown
  /** Closes the pool. */
  end(...args: never[]): unknown
  /** How many connections it has. */
  readonly totalCount: number
}

/** What tells the `sql` of `postgres` 3 (postgres.js). */
export interface PostgresJsLike {
  /** Runs a statement. */
  unsafe(...args: never[]): unknown
  /** Hears a channel. */
  listen(...args: never[]): unknown
  /** Closes all connections. */
  end(...args: never[]): unknown
}

export interface PostgresOptions {
  /** The schema that has Holdfast's tables and routines; it is made when it is missing. `holdfast` unless told. */
  schema?: string | undefined
  /** With a URL: which package to use. Otherwise `pg` or `postgres`, whichever is installed. */
  driver?: PackageName | undefined
  /** With a URL: the most connections, of which one listens. 5 unless told. */
  connections?: number | undefined
  /** With a URL: the TLS options of the driver (its `ssl`). */
  tls?: object | boolean | undefined
  /**
   * Whether to keep one connection for messages (LISTEN); true unless told. Behind a pooler in transaction mode, which drops them: false, or
   * the URL of the server itself.
   */
  listen?: boolean | string | undefined
  /** How long an unused resource's row is kept, so that a server clock set back by less cannot lower a fence. A minute unless told. */
  retention?: Duration | undefined
  /** Time other than the server's, for simulations. */
  env?: Env | undefined
}

const POSTGRES_OPTIONS: OptionNames<PostgresOptions> = {
  schema: true,
  driver: true,
  connections: true,
  tls: true,
  listen: true,
  retention: true,
  env: true,
}

/**
 * A store on PostgreSQL 12 or later: by a URL, or by the pool that you have (a `Pool` of `pg`, or the `sql` of `postgres`), which stays yours:
 * Holdfast closes only what it has opened. Its tables and routines are made on first use, in a schema of their own.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { postgres } from 'holdfast/postgres'
 *
 * const locks = new Holdfast(postgres('postgres://localhost/app'))
 * await locks.mutex('report').run(async () => console.log('the only one in the fleet'))
 * await locks.close()
 * ```
 */
export function postgres(poolOrUrl: string | PostgresPool, options: PostgresOptions = {}): Store {
  return new PostgresStore(userOf(poolOrUrl, options))
}

function userOf(poolOrUrl: string | PostgresPool, options: PostgresOptions): PostgresUser {
  checkOptions(options, POSTGRES_OPTIONS, "{ schema: 'locks' }")
  return typeof poolOrUrl === 'string' ? userOfUrl(poolOrUrl, options) : userOfPool(poolOrUrl, options)
}

function userOfUrl(text: string, options: PostgresOptions): PostgresUser {
  const { env = systemEnv } = options
  const { url, driver, connections, schema, listen } = readUrl(text)
  const address = {
    url,
    driver: options.driver === undefined ? driver : checkPackage(options.driver),
    connections: checkConnections(options.connections ?? connections ?? 5),
    tls: options.tls,
  }
  return new PostgresUser({
    openDriver: () => heardBy(openAddress(address, env), options.listen ?? listen, address, env),
    ...settingsOf({ ...options, schema: options.schema ?? schema, listen: options.listen ?? listen }),
  })
}

/**
 * The row lock of a transaction of your own, for work that is all in this database: work and release commit together, and the server frees the lock when the
 * client dies. It has no lease, takes a connection of the pool while it waits and works, and does not exclude a mutex of the same name.
 * `Tx` is what your driver calls a transaction: `PoolClient` of `pg`, or `TransactionSql` of `postgres`.
 *
 * @example
 * ```ts
 * import { transactionLock } from 'holdfast/postgres'
 * import pg from 'pg'
 *
 * const pool = new pg.Pool({ connectionString: 'postgres://localhost/app' })
 * await transactionLock<pg.PoolClient>(pool).run('stock:7', async (tx) => {
 *   await tx.query('UPDATE stock SET pieces = pieces - 1 WHERE id = $1', [7])
 * })
 * await pool.end()
 * ```
 */
export function transactionLock<Tx = PostgresSqlTransaction>(
  pool: PostgresPool,
  options: Pick<PostgresOptions, 'schema'> = {},
): TransactionLock<Tx> {
  return postgresTransactionLock<Tx>(pool, schemaOf(options))
}

/**
 * PostgreSQL's own advisory locks (`pg_advisory_lock`), shared with programs in other languages. Up to four connections of the pool hold them and wait for them in
 * the server's queue. A lock is lost with its connection; `hold.signal` tells. There is no lease, and a mutex of the same name is not excluded.
 *
 * @example
 * ```ts
 * import { advisory } from 'holdfast/postgres'
 * import pg from 'pg'
 *
 * const pool = new pg.Pool({ connectionString: 'postgres://localhost/app' })
 * await advisory(pool).run('nightly-report', async ({ fence }) => console.log('my fence is', fence))
 * await pool.end()
 * ```
 */
export function advisory(pool: PgPoolLike, options: Pick<PostgresOptions, 'schema'> = {}): AdvisoryLocks {
  return advisoryLocks(pool, schemaOf(options))
}

/**
 * Removes what nobody uses any more: lapsed claims, lines that have been idle for the retention, ended states. Clients do it about once a minute by themselves; this is
 * for a scheduled job, where clients come and go. Gives the number of lines that were removed.
 *
 * @example
 * ```ts
 * import { sweep } from 'holdfast/postgres'
 *
 * console.log(await sweep('postgres://localhost/app'), 'lines removed')
 * ```
 */
export async function sweep(
  poolOrUrl: string | PostgresPool,
  options: PostgresOptions = {},
): Promise<number> {
  const user = userOf(poolOrUrl, options)
  const name = user.join({ push: () => {}, onGap: () => {} })
  try {
    return await user.sweep()
  } finally {
    await user.leave(name)
  }
}

/** The users of each pool, by their settings: however many store values are made of a pool, one of its connections listens. */
const users = new WeakMap<object, Map<string, PostgresUser>>()

function userOfPool(pool: unknown, options: PostgresOptions): PostgresUser {
  for (const name of ['driver', 'connections', 'tls'] as const)
    if (options[name] !== undefined) throw invalid(`${name} is for a URL; a pool of yours is used as it is`)
  const env = options.env ?? systemEnv
  const open = driverOf(pool, env)
  const openDriver = (): Promise<Driver> => heardBy(open(), options.listen, {}, env)
  const settings = settingsOf(options)
  // Whoever brings time along gets a user of its own.
  if (options.env) return new PostgresUser({ openDriver, ...settings })
  const known = users.get(pool as object) ?? new Map<string, PostgresUser>()
  users.set(pool as object, known)
  const { schema, listen, retentionMs } = settings
  const key = JSON.stringify([schema, listen, options.listen, retentionMs])
  const user = known.get(key) ?? new PostgresUser({ openDriver, ...settings })
  known.set(key, user)
  return user
}

/** Messages come by a connection of their own, where a URL says so. */
async function heardBy(
  driver: Promise<Driver>,
  listen: boolean | string | undefined,
  { driver: name, tls }: Partial<Address>,
  env: Env,
): Promise<Driver> {
  if (typeof listen !== 'string') return driver
  const messages = await openAddress({ url: listen, driver: name, connections: 2, tls }, env)
  return new SplitDriver(await driver, messages)
}

function driverOf(pool: unknown, env: Env): () => Promise<Driver> {
  if (isPostgresJs(pool)) return async () => new PostgresJsDriver(pool, null)
  if (isPgPool(pool)) return async () => new PgDriver(pool, null, env)
  throw invalid(
    'postgres() takes a URL, such as postgres://localhost/app, a Pool of pg, or the sql of postgres (a single Client of pg will not do)',
  )
}

function settingsOf(options: PostgresOptions): Omit<PostgresUserOptions, 'openDriver'> {
  return {
    env: options.env ?? systemEnv,
    clock: options.env ?? null,
    schema: checkSchema(options.schema ?? 'holdfast'),
    listen: checkListen(options.listen ?? true),
    retentionMs: Math.ceil(toMs(options.retention ?? '1m', { name: 'retention', minMs: 1000 })),
  }
}

function schemaOf(options: Pick<PostgresOptions, 'schema'>): string {
  return checkSchema(checkOptions(options, { schema: true }, "{ schema: 'locks' }").schema ?? 'holdfast')
}

function checkSchema(schema: unknown): string {
  // Longer ones would be cut.
  if (typeof schema !== 'string' || schema === '' || schema.includes('\0') || Buffer.byteLength(schema) > 63)
    throw invalid(`schema is '${String(schema)}', but must be a name of 1 to 63 bytes`)
  return schema
}

/** Whether to listen at all. */
function checkListen(listen: unknown): boolean {
  if (typeof listen === 'string') readUrl(listen)
  else if (typeof listen !== 'boolean')
    throw invalid(`listen must be true, false or a URL, not ${String(listen)}`)
  return listen !== false
}

function checkConnections(connections: unknown): number {
  if (!Number.isInteger(connections) || Number(connections) < 1)
    throw invalid(`connections is ${String(connections)}, but must be a whole number from 1 on`)
  return Number(connections)
}
