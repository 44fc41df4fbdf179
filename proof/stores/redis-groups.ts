import { serverAvailability } from '../../test/servers/availability.js'
import type { RedisServer } from '../../test/servers/redis.js'
import { startRedisCluster } from '../../test/servers/redis-cluster.js'
import { startRedisSentinel } from '../../test/servers/redis-sentinel.js'
import { WallClock } from '../../test/servers/wall-clock.js'
import type { Way } from '../crowd.js'
import { clientClocks, clientNemeses, processNemeses, versionNemeses } from '../nemeses/clients.js'
import { packetNemeses } from '../nemeses/network.js'
import { slowly } from '../nemeses/slowly.js'
import type { Choice, Heal, Nemesis } from '../nemesis.js'
import type { ProvedStore } from '../store.js'

const LEASE_MS = 2000
const LOSES = 'what the replica had not received is lost'

export const redisSentinel: ProvedStore = {
  name: 'redis-sentinel',
  title: 'Redis with Sentinel',
  page: 'redis',
  leaseMs: LEASE_MS,
  setup: 'a primary, a replica and three Sentinels; `replicas` is 0, the default',
  obstacle: () => serverAvailability('redis'),
  async start() {
    const clock = new WallClock()
    const group = await startRedisSentinel()
    return {
      nemeses: [
        ...shared(async () => group.nodes, clock),
        failOver('the primary killed, a replica takes over', async () => {
          const old = await group.master()
          await group.killMaster()
          return async () => {
            await old.restart({ keepData: true })
            await group.replicating()
          }
        }),
        failOver('the primary paused, a replica takes over', async () => {
          const old = await group.master()
          await group.pauseMaster()
          return async () => {
            old.resume()
            await group.replicating()
          }
        }),
      ],
      wayOf: async (worker) => wayTo(group.url, worker, clock),
      async stop() {
        await group.stop()
        clock.dispose()
      },
    }
  },
}

export const redisCluster: ProvedStore = {
  name: 'redis-cluster',
  title: 'Redis Cluster',
  page: 'redis',
  leaseMs: LEASE_MS,
  setup: 'three masters with a replica each; `replicas` is 0, the default',
  obstacle: () => serverAvailability('redis'),
  async start() {
    const clock = new WallClock()
    const cluster = await startRedisCluster()
    return {
      nemeses: [
        ...shared(async () => cluster.nodes, clock),
        failOver('a master killed, its replica takes over', async (choice) => {
          const key = String(choice.random())
          const old = await cluster.masterOf(key)
          await cluster.killMaster(key)
          return async () => {
            await old.restart({ keepData: true })
            await cluster.serving()
          }
        }),
      ],
      wayOf: async (worker) => wayTo(cluster.url, worker, clock),
      async stop() {
        await cluster.stop()
        clock.dispose()
      },
    }
  },
}

function wayTo(url: string, worker: number, clock: WallClock): Way {
  return {
    url: `${url}?driver=${worker % 2 === 0 ? 'ioredis' : 'redis'}`,
    ...(clock.obstacle === null && worker < 2 && { env: clock.env }),
  }
}

function shared(nodes: () => Promise<readonly RedisServer[]>, clock: WallClock): Nemesis[] {
  return [
    ...clientNemeses(LEASE_MS),
    ...processNemeses(LEASE_MS),
    ...versionNemeses(LEASE_MS),
    ...packetNemeses(LEASE_MS, async () => (await nodes()).map(({ port }) => port)),
    ...(clock.obstacle === null ? clientClocks(clock, LEASE_MS) : []),
  ]
}

function failOver(name: string, begin: (choice: Choice) => Promise<Heal>): Nemesis {
  return {
    ...{ name, hits: 'servers', lastsMs: LEASE_MS, excuse: LOSES, isLossy: true },
    begin: async (_, choice) => slowly(() => begin(choice)),
  }
}
