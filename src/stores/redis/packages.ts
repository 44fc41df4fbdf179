import { deferred } from '../../base/deferred.js'
import type { Env } from '../../base/env.js'
import type { Loader } from '../../drivers/packages.js'
import { loadPackage, moduleWith } from '../shared/packages.js'
import type { RedisAddress } from './address.js'
import type { RedisDriver } from './driver.js'
import { outOfReach } from './failures.js'
import { DISCONNECT_WITHIN_MS, type IoredisClient, type IoredisCluster, IoredisDriver } from './ioredis.js'
import { type NodeRedisCluster, NodeRedisDriver, type NodeRedisSingle } from './node-redis.js'

export type PackageName = 'ioredis' | 'redis' | 'iovalkey'

/** A Redis without TLS answers nothing to a client that begins with it. */
export const NO_TLS_THERE = 'if this port is without TLS, write redis:// in place of rediss://'

/** In the order in which they are looked for. */
const LOADERS: Readonly<Record<PackageName, Loader>> = {
  ioredis: async () => {
    try {
      return { module: await import('ioredis') }
    } catch (error) {
      return { error }
    }
  },
  redis: async () => {
    try {
      return { module: await import('redis') }
    } catch (error) {
      return { error }
    }
  },
  iovalkey: async () => {
    try {
      return { module: await import('iovalkey') }
    } catch (error) {
      return { error }
    }
  },
}
export const PACKAGES = Object.keys(LOADERS) as PackageName[]

/** A server that accepts a connection and answers nothing on it is given up after this time. */
const OPEN_WITHIN_MS = 10_000
/**
 * A server that loads its data is asked so often whether it has. ioredis would wait as long as the
 * server estimates, up to 10 s, even if it takes a moment.
 */
const ASK_LOADING_EVERY_MS = 100
/** After this time the next Sentinel, or the next node of a Cluster, is asked. */
const NEXT_AFTER_MS = 2000

interface IoredisModule {
  readonly Redis: new (options: object) => IoredisClient
  readonly Cluster: new (nodes: readonly object[], options: object) => IoredisCluster
}

interface NodeRedisModule {
  createClient(options: object): NodeRedisSingle
  createCluster(options: object): NodeRedisCluster
}

/** Opens what a URL names, by the named package or the first that is installed. */
export async function openAddress(address: RedisAddress, env: Env): Promise<RedisDriver> {
  const wanted = { loaders: LOADERS, name: address.driver, what: 'Redis client', store: 'redis' }
  const { name, module } = await loadPackage(wanted)
  return name === 'redis'
    ? openNodeRedis(moduleWith('createClient', module), address, env)
    : openIoredis(moduleWith('Redis', module), address, env)
}

/**
 * Nothing is kept for later, nothing is sent twice and nothing is tried again by the client: what
 * is repeated, and until when, is the engine's business.
 */
const IOREDIS_OPTIONS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  retryStrategy: null,
  sentinelRetryStrategy: null,
  sentinelCommandTimeout: NEXT_AFTER_MS,
  disconnectTimeout: DISCONNECT_WITHIN_MS,
  maxLoadingRetryTime: ASK_LOADING_EVERY_MS,
}

async function openIoredis(
  { Redis, Cluster }: IoredisModule,
  address: RedisAddress,
  env: Env,
): Promise<RedisDriver> {
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
          // It would ask any one node whether the Cluster is ready, and wait for ever for one that
          // stands still.
          enableReadyCheck: false,
          redisOptions: {
            ...login,
            disconnectTimeout: DISCONNECT_WITHIN_MS,
            maxLoadingRetryTime: ASK_LOADING_EVERY_MS,
          },
          clusterRetryStrategy: null,
          // A busy machine may take longer than the second that it gives by itself.
          slotsRefreshTimeout: 3000,
        })
      : new Redis({
          ...IOREDIS_OPTIONS,
          ...login,
          db: database,
          ...(kind === 'sentinel'
            ? { sentinels: nodes, name: address.master, enableTLSForSentinelMode: tls }
            : nodes[0]),
        })
  const driver = new IoredisDriver(client, true)
  await connected(client, driver, address, env)
  return driver
}

async function openNodeRedis(module: NodeRedisModule, address: RedisAddress, env: Env): Promise<RedisDriver> {
  const { kind, nodes, tls, username, password, database } = address
  const options = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    disableOfflineQueue: true,
  }
  const socket = tls ? { tls } : {}
  const client =
    kind === 'cluster'
      ? module.createCluster({
          rootNodes: nodes.map((node) => ({ socket: { ...node, socketTimeout: NEXT_AFTER_MS } })),
          defaults: { ...options, socket: { ...socket, reconnectStrategy: reconnectMs } },
          // By itself it connects to all masters first, and waits for ever for one that stands
          // still.
          minimizeConnections: true,
          // It looks for the new master of a slot only that often; 5 s by itself.
          topologyRefreshOnReconnectionAttemptStrategy: 500,
        })
      : newClient(module, {
          ...options,
          database,
          socket: { ...socket, ...(await serverOf(module, address, env)), reconnectStrategy: false },
        })
  const driver = new NodeRedisDriver(client, true)
  await connected(client, driver, address, env)
  return driver
}

/** Never connected. */
const templates = new WeakMap<NodeRedisModule, NodeRedisSingle>()

/**
 * createClient() builds a class with all commands whenever its options differ from those of the
 * last call, which takes tens of milliseconds. A duplicate has the class of its template.
 */
function newClient(module: NodeRedisModule, options: object): NodeRedisSingle {
  const template = templates.get(module) ?? module.createClient({})
  templates.set(module, template)
  return template.duplicate(options)
}

/**
 * The server that the address names, or its Sentinels. Its client is opened anew whenever it is
 * cut, so they are asked again after each fail-over; node-redis' own Sentinel client loses messages
 * in one, and keeps the process from ending.
 */
async function serverOf(
  module: NodeRedisModule,
  { kind, nodes, master }: RedisAddress,
  env: Env,
): Promise<object> {
  if (kind !== 'sentinel') return nodes[0] ?? {}
  const failures: string[] = []
  for (const node of nodes) {
    const sentinel = newClient(module, { socket: { ...node, reconnectStrategy: false } })
    sentinel.on('error', () => {})
    // Its calls fail when it is destroyed.
    const giveUp = (): void => (sentinel.isOpen ? sentinel.destroy() : undefined)
    const cancel = env.timer(NEXT_AFTER_MS, giveUp, { keepAlive: false })
    try {
      await sentinel.connect()
      const found = await sentinel.sendCommand(['SENTINEL', 'get-master-addr-by-name', master])
      if (Array.isArray(found)) return { host: String(found[0]), port: Number(found[1]) }
      failures.push(`${node.host}:${node.port} knows no master '${master}'`)
    } catch (error) {
      failures.push(`${node.host}:${node.port}: ${error instanceof Error ? error.message : error}`)
    } finally {
      cancel()
      giveUp()
    }
  }
  throw outOfReach(`no Sentinel named the master (${failures.join('; ')})`)
}

/**
 * For a node of a Cluster, which may come back or be replaced meanwhile. After some 10 s the whole
 * Cluster is opened anew instead.
 */
function reconnectMs(attempt: number): number | false {
  return attempt > 14 ? false : Math.min(1000, 20 * 2 ** attempt)
}

/** The first failure is told at once, with its reason; the caller decides whether to try again. */
async function connected(
  client: Pick<IoredisClient, 'on' | 'connect'>,
  driver: RedisDriver,
  { kind, nodes, tls }: RedisAddress,
  env: Env,
): Promise<void> {
  const failed = new Promise<never>((_resolve, reject) => {
    client.on('error', (error: Error) => reject(error))
  })
  failed.catch(() => {})
  const silent = deferred<never>()
  // The client may wait as long for each Sentinel or node of a Cluster that cannot be reached.
  const limitMs = OPEN_WITHIN_MS * (kind === 'sentinel' ? nodes.length + 1 : nodes.length)
  const onSilence = (): void => silent.reject(new Error(`no answer within ${limitMs} ms`))
  const cancel = env.timer(limitMs, onSilence, { keepAlive: false })
  try {
    // One of several nodes may be dead: then only the client knows whether another one will do.
    await Promise.race([silent.promise, client.connect(), ...(kind === 'single' ? [failed] : [])])
  } catch (error) {
    await driver.close().catch(() => {})
    // The client's own word for it is "Connection is closed"; what led to that is in the event,
    // which may come a moment later.
    throw await Promise.race([failed.catch((reason) => reason), Promise.resolve(error)]).then((reason) =>
      asFailure(reason, tls),
    )
  } finally {
    cancel()
  }
}

function asFailure(error: unknown, isTls: boolean): unknown {
  if (error instanceof Error && /^[A-Z]+ /.test(error.message)) return error
  const message = String((error as Error)?.message)
  return outOfReach(`${message}${tlsHint(message, isTls)}`, error)
}

/** What one side says when the other one does not speak TLS. */
function tlsHint(message: string, isTls: boolean): string {
  if (isTls) return /wrong version number|packet length/.test(message) ? ` (${NO_TLS_THERE})` : ''
  return /ECONNRESET|EPIPE/.test(message) ? ' (if this port wants TLS, write rediss://)' : ''
}
