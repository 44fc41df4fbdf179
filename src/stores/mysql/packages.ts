import { connect, type Socket } from 'node:net'
import { HoldfastError } from '../../base/errors.js'
import { type Address, PACKAGES, type PackageName } from './address.js'
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

/** Makes a pool for a URL, by the named package or the first that is installed. Its connections do not keep the process from ending: waiting callers do that. */
export async function openAddress(settings: PoolSettings): Promise<Driver> {
  const { host, port, user, password, database, tls, driver } = settings.address
  const { name, module } = await loadPackage(driver)
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
  return new Driver(pool, true)
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

async function loadPackage(
  wanted: PackageName | undefined,
): Promise<{ name: PackageName; module: PackageModule }> {
  const failures: string[] = []
  for (const name of wanted === undefined ? PACKAGES : [wanted]) {
    try {
      // The name is no literal, so that neither compilers nor bundlers look for packages that need not be there.
      const path: string = name
      const module = await import(path)
      return { name, module: typeof module.createPool === 'function' ? module : module.default }
    } catch (error) {
      failures.push(`${name}: ${String(error instanceof Error ? error.message : error).split('\n', 1)[0]}`)
    }
  }
  const message = `No MySQL driver is installed; run: npm install ${wanted ?? 'mysql2'} (${failures.join('; ')})`
  throw new HoldfastError('UNSUPPORTED', message, { store: 'mysql' })
}
