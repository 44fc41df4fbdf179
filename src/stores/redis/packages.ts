import { HoldfastError } from '../../base/errors.js'
import type { Address } from './address.js'
import type { Driver } from './driver.js'
import { outOfReach } from './failures.js'
import { type IoredisClient, type IoredisCluster, IoredisDriver } from './ioredis.js'
import { type NodeRedisClient, NodeRedisDriver } from './node-redis.js'

export type PackageName = 'ioredis' | 'redis' | 'iovalkey'

/** In the order in which they are looked for. */
export const PACKAGES: readonly PackageName[] = ['ioredis', 'redis', 'iovalkey']

interface IoredisModule {
  readonly Redis: new (options: object) => IoredisClient
  readonly Cluster: new (nodes: readonly object[], options: object) => IoredisCluster
}

interface NodeRedisModule {
  createClient(options: object): NodeRedisClient
  createCluster(options: object): NodeRedisClient
  createSentinel(options: object): NodeRedisClient
}

/** Opens what a URL names, by the named package or the first that is installed. */
export async function openAddress(address: Address): Promise<Driver> {
  const { name, module } = await loadPackage(address.driver)
  return name === 'redis'
    ? openNodeRedis(module as NodeRedisModule, address)
    : openIoredis(module as IoredisModule, address)
}

async function loadPackage(wanted: PackageName | undefined): Promise<{ name: PackageName; module: unknown }> {
  const failures: string[] = []
  for (const name of wanted === undefined ? PACKAGES : [wanted]) {
    try {
      // The name is no literal, so that neither compilers nor bundlers look for packages that need not be there.
      return { name, module: await import(name) }
    } catch (error) {
      failures.push(`${name}: ${String(error instanceof Error ? error.message : error).split('\n', 1)[0]}`)
    }
  }
  const message = `No Redis client is installed; run: npm install ${wanted ?? 'ioredis'} (${failures.join('; ')})`
  throw new HoldfastError('UNSUPPORTED', message, { store: 'redis' })
}

/** Nothing is kept for later and nothing is sent twice by the client: what is repeated, and until when, is the engine's business. */
const IOREDIS_OPTIONS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  retryStrategy: reconnectMs,
}

async function openIoredis({ Redis, Cluster }: IoredisModule, address: Address): Promise<Driver> {
  const { kind, nodes, tls, username, password, database } = address
  const login = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls ? { tls: {} } : {}),
  }
  const client =
    kind === 'cluster'
      ? new Cluster(nodes, {
          lazyConnect: true,
          enableOfflineQueue: false,
          redisOptions: login,
          clusterRetryStrategy: reconnectMs,
        })
      : new Redis({
          ...IOREDIS_OPTIONS,
          ...login,
          db: database,
          ...(kind === 'sentinel'
            ? {
                sentinels: nodes,
                name: address.master,
                sentinelRetryStrategy: reconnectMs,
                enableTLSForSentinelMode: tls,
              }
            : nodes[0]),
        })
  const driver = new IoredisDriver(client, true)
  await connected(client, driver, kind)
  return driver
}

async function openNodeRedis(module: NodeRedisModule, address: Address): Promise<Driver> {
  const { kind, nodes, tls, username, password, database, master } = address
  const socket = { reconnectStrategy: reconnectMs, ...(tls ? { tls } : {}) }
  const options = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    disableOfflineQueue: true,
    socket,
  }
  const open = {
    single: () => module.createClient({ ...options, database, socket: { ...socket, ...nodes[0] } }),
    cluster: () =>
      module.createCluster({
        rootNodes: nodes.map((node) => ({ socket: node })),
        defaults: options,
        // It looks for the new master of a slot only that often; 5 s by itself.
        topologyRefreshOnReconnectionAttemptStrategy: 500,
      }),
    sentinel: () =>
      module.createSentinel({
        name: master,
        sentinelRootNodes: nodes,
        nodeClientOptions: { ...options, database },
      }),
  }
  const client = open[kind]()
  const driver = new NodeRedisDriver(client, true)
  await connected(client, driver, kind)
  return driver
}

function reconnectMs(attempt: number): number {
  return Math.min(1000, 20 * 2 ** Math.min(attempt, 10))
}

/** The first failure is told at once, with its reason; the caller decides whether to try again. */
async function connected(
  client: Pick<IoredisClient, 'on' | 'connect'>,
  driver: Driver,
  kind: Address['kind'],
): Promise<void> {
  const failed = new Promise<never>((_resolve, reject) => {
    client.on('error', (error: Error) => reject(error))
  })
  failed.catch(() => {})
  try {
    // One of several nodes may be dead: then only the client knows whether another one will do.
    await (kind === 'single' ? Promise.race([failed, client.connect()]) : client.connect())
  } catch (error) {
    await driver.close().catch(() => {})
    // The client's own word for it is "Connection is closed"; what led to that is in the event, which may come a moment later.
    throw await Promise.race([failed.catch((reason) => reason), Promise.resolve(error)]).then(asFailure)
  }
}

function asFailure(error: unknown): unknown {
  return error instanceof Error && /^[A-Z]+ /.test(error.message)
    ? error
    : outOfReach(String((error as Error)?.message), error)
}
