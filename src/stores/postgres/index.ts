import { type Duration, toMs } from '../../base/duration.js'
import { type Env, systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'
import type { Store } from '../../contract/store.js'
import { readUrl } from './address.js'
import type { Driver } from './driver.js'
import { checkPackage, openAddress, type PackageName } from './packages.js'
import { isPgPool, PgDriver, type PgPool } from './pg.js'
import { isPostgresJs, type PostgresJs, PostgresJsDriver } from './postgres-js.js'
import { PostgresStore } from './store.js'
import { PostgresUser } from './user.js'

export type { PgPool, PgPoolClient, PgStatement } from './pg.js'
export type { PostgresJs, PostgresJsQuery } from './postgres-js.js'

export interface PostgresOptions {
  /** The schema that has Holdfast's tables and routines; it is made when it is missing. `holdfast` unless told. */
  schema?: string
  /** With a URL: which package to use. Otherwise `pg` or `postgres`, whichever is installed. */
  driver?: PackageName
  /** With a URL: the most connections, of which one listens. 5 unless told. */
  connections?: number
  /** With a URL: the TLS options of the driver (its `ssl`). */
  tls?: object | boolean
  /** Whether to keep one connection for messages (LISTEN). Say false behind a pooler in transaction mode. true unless told. */
  listen?: boolean
  /** How long an unused resource's row is kept, so that a server clock set back by less cannot lower a fence. A minute unless told. */
  retention?: Duration
  /** Time other than the server's, for simulations. */
  env?: Env
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
export function postgres(poolOrUrl: string | PgPool | PostgresJs, options: PostgresOptions = {}): Store {
  const { env = systemEnv } = options
  const { openDriver, told } = opener(poolOrUrl, options, env)
  const user = new PostgresUser({
    openDriver,
    env,
    clock: options.env ?? null,
    schema: checkSchema(options.schema ?? told.schema ?? 'holdfast'),
    listen: options.listen ?? told.listen ?? true,
    retentionMs: Math.ceil(toMs(options.retention ?? '1m', { name: 'retention', minMs: 1000 })),
  })
  return new PostgresStore(user)
}

interface Opener {
  openDriver(): Promise<Driver>
  /** What the URL says beside the address. */
  readonly told: { readonly schema?: string; readonly listen?: boolean }
}

function opener(from: unknown, options: PostgresOptions, env: Env): Opener {
  if (typeof from === 'string') {
    const { url, driver, connections, ...told } = readUrl(from)
    const address = {
      url,
      driver: options.driver === undefined ? driver : checkPackage(options.driver),
      connections: checkConnections(options.connections ?? connections ?? 5),
      tls: options.tls,
    }
    return { openDriver: () => openAddress(address, env), told }
  }
  for (const name of ['driver', 'connections', 'tls'] as const)
    if (options[name] !== undefined) throw invalid(`${name} is for a URL; a pool of yours is used as it is`)
  if (isPostgresJs(from)) return { openDriver: async () => new PostgresJsDriver(from, false), told: {} }
  if (typeof from === 'object' && from !== null && isPgPool(from))
    return { openDriver: async () => new PgDriver(from, false, env), told: {} }
  throw invalid(
    'postgres() takes a URL, such as postgres://localhost/app, a Pool of pg, or the sql of postgres (a single Client of pg will not do)',
  )
}

function checkSchema(schema: unknown): string {
  // Longer ones would be cut.
  if (typeof schema !== 'string' || schema === '' || schema.includes('\0') || Buffer.byteLength(schema) > 63)
    throw invalid(`schema is '${String(schema)}', but must be a name of 1 to 63 bytes`)
  return schema
}

function checkConnections(connections: unknown): number {
  if (!Number.isInteger(connections) || Number(connections) < 1)
    throw invalid(`connections is ${String(connections)}, but must be a whole number from 1 on`)
  return Number(connections)
}
