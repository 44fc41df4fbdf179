import { type ServerName, serverAvailability } from '../../test/servers/availability.js'
import { TcpProxy } from '../../test/servers/proxy.js'
import type { Server } from '../../test/servers/server.js'
import { WallClock } from '../../test/servers/wall-clock.js'
import {
  clientClocks,
  clientNemeses,
  clientsWithoutDescriptors,
  processNemeses,
  versionNemeses,
} from '../nemeses/clients.js'
import { clientsOf } from '../nemeses/connections.js'
import { packetNemeses, proxyNemeses } from '../nemeses/network.js'
import { type Hit, killedServers, pausedServers, restartedServers } from '../nemeses/servers.js'
import type { Choice, Nemesis } from '../nemesis.js'
import type { ProvedStore } from '../store.js'

interface StartedEnsemble {
  readonly servers: readonly Server[]
  leader(): Promise<Server>
  stop(): Promise<void>
}

export interface Ensemble
  extends Pick<ProvedStore, 'name' | 'title' | 'page' | 'leaseMs' | 'askedLeaseMs' | 'setup' | 'missing'> {
  readonly needs: ServerName
  startServers(): Promise<StartedEnsemble>
  /** The store's URL, with the addresses of the servers or of proxies in front of them. */
  urlAt(addresses: string): string
  /** What its page says about a leader that sleeps for longer than a lease. */
  readonly leaderPauseExcuse?: string
}

/** Reasons why a fault is not made. */
export const NOT_OF_MEMBERS = [
  { fault: 'packets lost between servers', reason: 'servers of one cluster always reach each other here' },
  { fault: 'one server back without its data', reason: 'its maker asks to add it as a new member' },
  { fault: 'disks, file descriptors and clocks of servers', reason: 'see the run with one server' },
]

/** A store of several servers with a leader that they elect. */
export function ensemble(store: Ensemble): ProvedStore {
  const { leaseMs } = store
  return {
    ...store,
    obstacle: () => serverAvailability(store.needs),
    async start() {
      const clock = new WallClock()
      const canMove = clock.obstacle === null
      const started = await store.startServers()
      return {
        nemeses: [
          ...clientNemeses(leaseMs),
          ...processNemeses(leaseMs),
          ...versionNemeses(leaseMs),
          clientsWithoutDescriptors(leaseMs),
          ...serverNemeses(started, store),
          ...proxyNemeses(leaseMs),
          ...packetNemeses(leaseMs, 'some servers', async (choice) => [usedServer(started, choice).port]),
          ...(canMove ? clientClocks(clock, leaseMs) : []),
        ],
        async wayOf(worker) {
          const { servers } = started
          const proxies =
            worker % 2 === 0 ? await Promise.all(servers.map(({ port }) => TcpProxy.start(port))) : []
          const ports = (proxies.length > 0 ? proxies : servers).map(({ port }) => port)
          return {
            url: store.urlAt(ports.map((port) => `127.0.0.1:${port}`).join(',')),
            proxies,
            ...(canMove && worker < 2 && { env: clock.env }),
          }
        },
        async stop() {
          await started.stop()
          clock.dispose()
        },
      }
    },
  }
}

/** One that has the most clients at this moment: its network surely has something to lose. */
function usedServer({ servers }: StartedEnsemble, choice: Choice): Server {
  const counts = servers.map(clientsOf)
  const most = Math.max(...counts)
  return choice.one(servers.filter((_, index) => counts[index] === most))
}

function serverNemeses(
  { servers, leader }: StartedEnsemble,
  { leaseMs, leaderPauseExcuse }: Ensemble,
): Nemesis[] {
  const theLeader: Hit = { name: 'the leader', servers: async () => [await leader()] }
  const one: Hit = { name: 'one of the servers', servers: (choice) => [choice.one(servers)] }
  const all: Hit = { name: 'all servers', isAll: true, servers: () => servers }
  return [
    ...killedServers(theLeader, leaseMs),
    ...killedServers(one, leaseMs),
    ...killedServers(all, leaseMs),
    ...pausedServers(theLeader, leaseMs, leaderPauseExcuse),
    ...pausedServers(all, leaseMs, leaderPauseExcuse),
    restartedServers(servers),
  ]
}
