import { Socket } from 'node:net'
import type { Env } from '../../base/env.js'
import type { Loader } from '../../drivers/packages.js'
import { checkPackage as checkPackageOf, loadPackage, moduleWith } from '../shared/packages.js'
import type { PostgresDriver } from './driver.js'
import { PgDriver, type PgPool, type PgPoolClient } from './pg.js'
import { type PostgresJs, PostgresJsDriver } from './postgres-js.js'
import { Sockets, unreferencedSocket } from './socket.js'

export type PackageName = 'pg' | 'postgres'

/** In the order in which they are looked for. */
const LOADERS: Readonly<Record<PackageName, Loader>> = {
  pg: async () => {
    try {
      return { module: await import('pg') }
    } catch (error) {
      return { error }
    }
  },
  postgres: async () => {
    try {
      return { module: await import('postgres') }
    } catch (error) {
      return { error }
    }
  },
}
const PACKAGES = Object.keys(LOADERS) as PackageName[]

/** A URL, with the options beside it. */
export interface PostgresAddress {
  readonly url: string
  readonly driver: PackageName | undefined
  readonly connections: number
  readonly tls: object | boolean | undefined
}

interface PgModule {
  readonly Pool: new (
    options: object,
  ) => PgPool & {
    on(event: 'error' | 'connect', run: (client: PgPoolClient) => void): void
  }
}

interface PostgresJsModule {
  readonly default: (url: string, options: object) => PostgresJs
}

const CONNECT_WITHIN_MS = 10_000

export function checkPackage(name: unknown): PackageName {
  return checkPackageOf(name, PACKAGES)
}

/** Opens a URL with the named package, or with the first that is installed. */
export async function openAddress(address: PostgresAddress, env: Env): Promise<PostgresDriver> {
  const wanted = { loaders: LOADERS, name: address.driver, what: 'PostgreSQL driver', store: 'postgres' }
  const { name, module } = await loadPackage(wanted)
  const sockets = new Sockets()
  return name === 'pg'
    ? new PgDriver(openPool(moduleWith('Pool', module), address, sockets), sockets, env)
    : new PostgresJsDriver(openSql(module as PostgresJsModule, address, sockets), sockets)
}

function openPool(module: PgModule, { url, connections, tls }: PostgresAddress, sockets: Sockets): PgPool {
  const pool = new module.Pool({
    connectionString: url,
    max: connections,
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    application_name: 'holdfast',
    allowExitOnIdle: true,
    keepAlive: true,
    stream: () => sockets.add(new Socket()),
    ...(tls === undefined ? {} : { ssl: tls }),
  })
  // An idle connection that ends is replaced when it is needed; calls report what fails.
  pool.on('error', () => {})
  // A session that ends while its greeting is read fails before anybody can listen to it.
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

/**
 * It listens on a connection besides its pool. It makes no pauses: the engine decides on retries.
 */
function openSql(
  module: PostgresJsModule,
  { url, connections, tls }: PostgresAddress,
  sockets: Sockets,
): PostgresJs {
  return module.default(url, {
    max: Math.max(1, connections - 1),
    connect_timeout: CONNECT_WITHIN_MS / 1000,
    backoff: () => 0.02,
    // Its timer would keep the process alive.
    max_lifetime: null,
    fetch_types: false,
    onnotice: () => {},
    socket: async (target: Parameters<typeof unreferencedSocket>[0]) =>
      sockets.add(await unreferencedSocket(target)),
    connection: { application_name: 'holdfast' },
    ...(tls === undefined ? {} : { ssl: tls }),
  })
}
