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
import { checkConnections, PoolCache, refuseUrlOptions } from '../shared/pools.js'
import { readUrl } from './address.js'
import { PostgresBackend, type PostgresBackendOptions } from './backend.js'
import type { PostgresDriver } from './driver.js'
import { checkPackage, openAddress, type PackageName, type PostgresAddress } from './packages.js'
import { isPgPool, PgDriver } from './pg.js'
import { isPostgresJs, PostgresJsDriver } from './postgres-js.js'
import { SplitDriver } from './split-driver.js'
import { PostgresStore } from './store.js'

export type { AdvisoryHold, AdvisoryLocks } from '../../database-locks/postgres/advisory.js'
export type { PostgresSqlTransaction as SqlTransaction } from '../../database-locks/postgres/transactions.js'
export type { SessionLockOptions as AdvisoryOptions } from '../../database-locks/sessions/acquire.js'
export type { TransactionLock } from '../../database-locks/transactions/lock.js'
export type { TransactionLockOptions } from '../../database-locks/transactions/options.js'

/** A pool of yours, recognised by its methods: loosely enough for the types of all versions. */
export type PostgresPool = PgPoolLike | PostgresJsLike

/** The methods by which a `Pool` of `pg` 8 is recognised. */
export interface PgPoolLike {
  /** Takes a connection out of the pool. */
  connect(...args: never[]): unknown
  /** Closes the pool. */
  end(...args: never[]): unknown
  /** How many connections it has. */
  readonly totalCount: number
}

/** The methods by which the `sql` of `postgres` 3 (postgres.js) is recognised. */
export interface PostgresJsLike {
  /** Runs a statement. */
  unsafe(...args: never[]): unknown
  /** Hears a channel. */
  listen(...args: never[]): unknown
  /** Closes all connections. */
  end(...args: never[]): unknown
}

/** The options of `postgres`. Those in code override those in the URL. */
export interface PostgresOptions {
  /** The schema of the tables and routines; created when it is missing. Default: `holdfast`. */
  schema?: string | undefined
  /** With a URL: which package to use. Default: `pg` or `postgres`, the first that is installed. */
  driver?: PackageName | undefined
  /** With a URL: the most connections, of which one listens. Default: 5. */
  connections?: number | undefined
  /** With a URL: the TLS options of the driver (its `ssl`). */
  tls?: object | boolean | undefined
  /**
   * Whether to keep one connection for messages (LISTEN). Default: true. A pooler in transaction
   * mode drops them: there, set false or the URL of the server itself.
   */
  listen?: boolean | string | undefined
  /**
   * How long an unused resource's row is kept, so that a server clock set back by less cannot lower
   * a fence. Default: a minute.
   */
  retention?: Duration | undefined
  /** A clock other than the server's, for simulations. */
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
 * A store on PostgreSQL 12 or later, by a URL or by your own pool (a `Pool` of `pg`, or the `sql`
 * of `postgres`). Holdfast closes only what it has opened. It creates its tables and routines on
 * first use, in a schema of their own.
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
  return new PostgresStore(backendOf(poolOrUrl, options))
}

function backendOf(poolOrUrl: string | PostgresPool, options: PostgresOptions): PostgresBackend {
  checkOptions(options, POSTGRES_OPTIONS, "{ schema: 'locks' }")
  return typeof poolOrUrl === 'string' ? backendOfUrl(poolOrUrl, options) : backendOfPool(poolOrUrl, options)
}

function backendOfUrl(text: string, options: PostgresOptions): PostgresBackend {
  const { env = systemEnv } = options
  const { url, driver, connections, schema, listen } = readUrl(text)
  const address = {
    url,
    driver: options.driver === undefined ? driver : checkPackage(options.driver),
    connections: checkConnections(options.connections ?? connections ?? 5),
    tls: options.tls,
  }
  return new PostgresBackend({
    openDriver: () => withListener(openAddress(address, env), options.listen ?? listen, address, env),
    ...settingsOf({ ...options, schema: options.schema ?? schema, listen: options.listen ?? listen }),
  })
}

/**
 * The row lock of a transaction of your own, for work that is all in this database: work and
 * release commit together, and the server frees the lock when the client dies. It has no lease,
 * takes a connection of the pool while it waits and works, and does not exclude a mutex of the same
 * name.
 * `Tx` is the transaction of your driver: `PoolClient` of `pg`, or `TransactionSql` of `postgres`.
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
 * PostgreSQL's own advisory locks (`pg_advisory_lock`), shared with programs in other languages. Up
 * to four connections of the pool hold them and wait for them in the server's queue. A lock is lost
 * with its connection; `hold.signal` tells. There is no lease, and a mutex of the same name is not
 * excluded.
 *
 * @example
 * ```ts
 * import { advisory } from 'holdfast/postgres'
 * import pg from 'pg'
 *
 * const pool = new pg.Pool({ connectionString: 'postgres://localhost/app' })
 * await advisory(pool).run('nightly-report', async ({ fence }) => console.log('fence', fence))
 * await pool.end()
 * ```
 */
export function advisory(pool: PgPoolLike, options: Pick<PostgresOptions, 'schema'> = {}): AdvisoryLocks {
  return advisoryLocks(pool, schemaOf(options))
}

/**
 * Removes what is no longer used: lapsed claims, lines that have been idle for the retention, ended
 * states. Clients do this about once a minute; call it from a scheduled job where clients come and
 * go. Gives the number of removed lines.
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
  const backend = backendOf(poolOrUrl, options)
  const name = backend.join({ push: () => {}, onGap: () => {} })
  try {
    return await backend.sweep()
  } finally {
    await backend.leave(name)
  }
}

/** However many store values are made of a pool, one of its connections listens. */
const backends = new PoolCache<PostgresBackend>()

function backendOfPool(pool: unknown, options: PostgresOptions): PostgresBackend {
  refuseUrlOptions(options)
  const env = options.env ?? systemEnv
  const open = driverOf(pool, env)
  const settings = settingsOf(options)
  const make = (): PostgresBackend =>
    new PostgresBackend({ openDriver: () => withListener(open(), options.listen, {}, env), ...settings })
  // A backend with a clock of its own is not shared.
  if (options.env) return make()
  const { schema, listen, retentionMs } = settings
  return backends.get(pool as object, [schema, listen, options.listen, retentionMs], make)
}

/** With a URL in `listen`, messages come over a connection of their own. */
async function withListener(
  driver: Promise<PostgresDriver>,
  listen: boolean | string | undefined,
  { driver: name, tls }: Partial<PostgresAddress>,
  env: Env,
): Promise<PostgresDriver> {
  if (typeof listen !== 'string') return driver
  const opening = openAddress({ url: listen, driver: name, connections: 2, tls }, env)
  const [calls, messages] = await Promise.all([driver, opening])
  return new SplitDriver(calls, messages)
}

function driverOf(pool: unknown, env: Env): () => Promise<PostgresDriver> {
  if (isPostgresJs(pool)) return async () => new PostgresJsDriver(pool, null)
  if (isPgPool(pool)) return async () => new PgDriver(pool, null, env)
  throw invalid(
    'postgres() takes a URL, such as postgres://localhost/app, a Pool of pg, or the sql of postgres (a single Client of pg will not do)',
  )
}

function settingsOf(options: PostgresOptions): Omit<PostgresBackendOptions, 'openDriver'> {
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
