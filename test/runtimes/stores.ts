import type { Share, Skips } from '../conformance/run-cases.js'
import type { ServerName } from '../servers/availability.js'
import { startEtcd } from '../servers/etcd.js'
import { startMariadb } from '../servers/mariadb.js'
import { startMemcached } from '../servers/memcached.js'
import { startPostgres } from '../servers/postgres.js'
import { startQuorum } from '../servers/quorum.js'
import { startRedis } from '../servers/redis.js'
import { startZooKeeper } from '../servers/zookeeper.js'
import { ETCD_LIMITS, ETCD_SKIPS } from '../stores/etcd/conformance.js'
import { MEMCACHED_LIMITS, MEMCACHED_SKIPS } from '../stores/memcached/skips.js'
import { QUORUM_LIMITS, QUORUM_SKIPS } from '../stores/quorum/conformance.js'
import { ZOOKEEPER_LIMITS, ZOOKEEPER_SKIPS } from '../stores/zookeeper/conformance.js'
import type { Plan, StoreName } from './plan.js'

/** The servers of a store, while the suite runs on them. */
export interface Servers {
  readonly urls: readonly string[]
  stop(): Promise<unknown>
}

/** How to run the suite on a store. */
export interface Place {
  readonly store: StoreName
  /** For people. */
  readonly title: string
  readonly needs?: ServerName
  readonly options?: Readonly<Record<string, string>>
  readonly limits?: Readonly<Record<string, string>>
  readonly skips?: Skips
  /** Of the cases, unless all are asked for. */
  readonly share: Share
  start(): Promise<Servers>
}

const isAll = process.env['HOLDFAST_TEST_ALL'] === '1'
const FEW: Share = { part: 1, of: 21 }

const HEAVY: Skips = {
  '3000 waiters of one process make no call each while they wait, and are served in order':
    'takes most of a minute',
}

export const PLACES: readonly Place[] = [
  { store: 'memory', title: 'memory', share: { part: 0, of: 5 }, start: withoutServer },
  { store: 'sqlite', title: 'SQLite', share: { part: 1, of: 7 }, start: withoutServer },
  {
    store: 'redis',
    title: 'Redis',
    needs: 'redis',
    options: { driver: 'ioredis' },
    share: { part: 2, of: 9 },
    start: () => oneServer(startRedis()),
  },
  {
    store: 'postgres',
    title: 'PostgreSQL',
    needs: 'postgres',
    share: FEW,
    start: () => oneServer(startPostgres()),
  },
  { store: 'mysql', title: 'MariaDB', needs: 'mariadb', share: FEW, start: () => oneServer(startMariadb()) },
  {
    store: 'zookeeper',
    title: 'ZooKeeper',
    needs: 'zookeeper',
    options: { sessionTimeout: '8s', tick: '200ms' },
    limits: ZOOKEEPER_LIMITS,
    skips: ZOOKEEPER_SKIPS,
    share: FEW,
    async start() {
      const server = await startZooKeeper()
      return { urls: [`zookeeper://${server.address}`], stop: () => server.stop() }
    },
  },
  {
    store: 'etcd',
    title: 'etcd',
    needs: 'etcd',
    options: { ttl: '8s' },
    limits: ETCD_LIMITS,
    skips: ETCD_SKIPS,
    share: FEW,
    start: () => oneServer(startEtcd()),
  },
  {
    store: 'memcached',
    title: 'memcached',
    needs: 'memcached',
    limits: MEMCACHED_LIMITS,
    skips: MEMCACHED_SKIPS,
    share: FEW,
    start: () => oneServer(startMemcached()),
  },
  {
    store: 'quorum',
    title: 'a quorum of three Redis',
    needs: 'redis',
    options: { longestLease: '1h', memberTimeout: '10s' },
    limits: QUORUM_LIMITS,
    skips: QUORUM_SKIPS,
    share: FEW,
    start: () => startQuorum(['redis', 'redis', 'redis']),
  },
]

/** The plan for a place with these servers. */
export function planOf(place: Place, { urls }: Pick<Servers, 'urls'>): Plan {
  const { store, options = {}, limits = {}, skips = {}, share } = place
  const whole: Share = { part: 0, of: 1 }
  const without = isAll || store === 'memory' || store === 'sqlite' ? {} : HEAVY
  return { store, urls, options, limits, skips: { ...without, ...skips }, share: isAll ? whole : share }
}

async function withoutServer(): Promise<Servers> {
  return { urls: [''], stop: async () => {} }
}

async function oneServer(
  starting: Promise<{ readonly url: string; stop(): Promise<unknown> }>,
): Promise<Servers> {
  const server = await starting
  return { urls: [server.url], stop: () => server.stop() }
}
