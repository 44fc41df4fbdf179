import { connect, type Socket } from 'node:net'
import type { Loader } from '../../drivers/packages.js'
import { loadPackage, moduleWith } from '../shared/packages.js'
import type { MysqlAddress, PackageName } from './address.js'
import { MysqlDriver } from './driver.js'

/** Time to open a connection: a hung server is reported before the engine gives up. */
const CONNECT_TIMEOUT_MS = 3000

export interface PoolSettings {
  readonly address: MysqlAddress
  /** TLS options of the package, unchanged. */
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

/**
 * Opens a pool for a URL with the named package, or with the first that is installed. Its
 * connections do not keep the process alive: waiting callers do.
 */
export async function openAddress(settings: PoolSettings): Promise<MysqlDriver> {
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
  return new MysqlDriver(pool, true, settings.connections)
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
    // mysql2 reports at once that it cannot connect; mariadb retries for this long.
    acquireTimeout: CONNECT_TIMEOUT_MS,
    // Otherwise a connection that was idle for half a second is pinged before its next statement.
    minDelayValidation: 60_000,
    // Otherwise each call is followed by a ROLLBACK; our routines leave nothing to roll back.
    noControlAfterUse: true,
    // Its timer for idle connections keeps the process alive; by default it opens all at once.
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
