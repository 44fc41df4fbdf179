import { connect, type Socket } from 'node:net'
import { type Loader, loadPackage, moduleWith } from '../../drivers/packages.js'
import type { Address, PackageName } from './address.js'
import { Driver } from './driver.js'

/** How long a connection may take to be made: a server that is silent is told as such before the engine gives up. */
const CONNECT_TIMEOUT_MS = 3000

export interface PoolSettings {
  readonly address: Address
  /** TLS options of the package, passed on as they are. */
  readonly tls: object | undefined
  readonly connections: number
}

interface PackageModule {
  createPool(options: object): {
    on(event: 'connection', listener: (connection: { stream?: Socket }) => void): unknown
  }
}

const LOADERS: Readonly<Record<PackageName, Loader>> = {
  mysql2: async () => {
    try {
      return { module: await import('mysql2') }
    } catch (error) {
      return { error }
    }
  },
  mariadb: async () => {
    try {
      return { module: await import('mariadb') }
    } catch (error) {
      return { error }
    }
  },
}

/** Makes a pool for a URL, by the named package or the first that is installed. Its connections do not keep the process from ending: waiting callers do that. */
export async function openAddress(settings: PoolSettings): Promise<Driver> {
  const { host, port, user, password, database, tls, driver } = settings.address
  const { name, module } = await loadModule(driver)
  const ssl = settings.tls ?? (tls ? {} : undefined)
  const common = {
    host,
    port,
    user,
    password,
    database,
    connectionLimit: settings.connections,
    connectTimeout: CONNECT_TIMEOUT_MS,
    ...(ssl ? { ssl } : {}),
  }
  const pool = name === 'mysql2' ? openMysql2(module, common) : openMariadb(module, common)
  return new Driver(pool, true, settings.connections)
}

function openMysql2(module: PackageModule, common: object): unknown {
  const pool = module.createPool(common)
  pool.on('connection', ({ stream }) => stream?.unref())
  return pool
}

function openMariadb(module: PackageModule, common: { host: string; port: number }): unknown {
  const { host, port } = common
  return module.createPool({
    ...common,
    stream: () => connect({ host, port }).setNoDelay(true).unref(),
    // mysql2 tells at once that no connection can be made; mariadb goes on trying for that long.
    acquireTimeout: CONNECT_TIMEOUT_MS,
    // Otherwise every connection that has rested for half a second costs a ping before its next statement.
    minDelayValidation: 60_000,
    // Otherwise every call of a routine is followed by a ROLLBACK when the connection is given back; our routines leave nothing to roll back.
    noControlAfterUse: true,
    // Its timer for idle connections would keep the process alive, and it opens all of them at once unless told.
    idleTimeout: 0,
    minimumIdle: 1,
  })
}

async function loadModule(
  wanted: PackageName | undefined,
): Promise<{ name: PackageName; module: PackageModule }> {
  const loaded = await loadPackage({ loaders: LOADERS, name: wanted, what: 'MySQL driver', store: 'mysql' })
  return { name: loaded.name, module: moduleWith('createPool', loaded.module) }
}
