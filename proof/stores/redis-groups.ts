import { serverAvailability } from '../../test/servers/availability.js'
import type { RedisServer } from '../../test/servers/redis.js'
import { startRedisCluster } from '../../test/servers/redis-cluster.js'
import { startRedisSentinel } from '../../test/servers/redis-sentinel.js'
import { WallClock } from '../../test/servers/wall-clock.js'
import type { Way } from '../crowd.js'
import {
  clientClocks,
  clientNemeses,
  clientsWithoutDescriptors,
  processNemeses,
  versionNemeses,
} from '../nemeses/clients.js'
import { packetNemeses } from '../nemeses/network.js'
import { type Hit, killedServers, pausedServers } from '../nemeses/servers.js'
import { slowly } from '../nemeses/slowly.js'
import type { Choice, Heal, Nemesis } from '../nemesis.js'
import type { ProvedStore } from '../store.js'

const LEASE_MS = 2000
const LOSES = 'what the replica had not received is lost'

const NOT_OF_GROUPS = [
  { fault: 'single clients cut off', reason: 'servers tell their addresses, so clients go past a proxy' },
  {
    fault: 'the primary back at once, or without its data',
    reason: 'its replica would take over its empty state',
  },
  { fault: 'disks, file descriptors and clocks of servers', reason: 'see the run with one server' },
]

export const redisSentinel: ProvedStore = {
  name: 'redis-sentinel',
  title: 'Redis with Sentinel',
  page: 'redis',
  leaseMs: LEASE_MS,
  setup: 'a primary, a replica and three Sentinels; `replicas` is 0, the default',
  missing: NOT_OF_GROUPS,
  obstacle: () => serverAvailability('redis'),
  async start() {
    const clock = new WallClock()
    const group = await startRedisSentinel()
    const theReplica: Hit = {
      name: 'the replica',
      async servers() {
        const master = await group.master()
        return group.nodes.filter((node) => node !== master)
      },
    }
    const aSentinel: Hit = { name: 'a Sentinel', servers: (choice) => [choice.one(group.sentinels)] }
    return {
      nemeses: [
        ...shared(group.nodes, clock),
        // The Sentinels wait for a minute before they give it up.
        ...pausedServers(
          { name: 'the primary', isAll: true, servers: async () => [await group.master()] },
          LEASE_MS,
        ),
        ...killedServers(theReplica, LEASE_MS),
        ...killedServers(aSentinel, LEASE_MS),
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
  missing: NOT_OF_GROUPS,
  obstacle: () => serverAvailability('redis'),
  async start() {
    const clock = new WallClock()
    const cluster = await startRedisCluster()
    const aMaster: Hit = {
      name: 'a master',
      servers: async ({ random }) => [await cluster.masterOf(String(random()))],
    }
    const aReplica: Hit = {
      name: 'a replica',
      servers: async ({ random }) => [await cluster.replicaOf(String(random()))],
    }
    return {
      nemeses: [
        ...shared(cluster.nodes, clock),
        // The others wait for a minute before they give it up.
        ...pausedServers(aMaster, LEASE_MS),
        ...killedServers(aReplica, LEASE_MS),
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

function shared(nodes: readonly RedisServer[], clock: WallClock): Nemesis[] {
  const ports = nodes.map(({ port }) => port)
  return [
    ...clientNemeses(LEASE_MS),
    ...processNemeses(LEASE_MS),
    ...versionNemeses(LEASE_MS),
    clientsWithoutDescriptors(LEASE_MS, ports),
    ...packetNemeses(LEASE_MS, 'all servers', async () => ports),
    ...(clock.obstacle === null ? clientClocks(clock, LEASE_MS) : []),
  ]
}

function failOver(name: string, begin: (choice: Choice) => Promise<Heal>): Nemesis {
  return {
    ...{ name, hits: 'servers', lastsMs: LEASE_MS, excuse: LOSES, isLossy: true },
    begin: async (_, choice) => slowly(() => begin(choice)),
  }
}
