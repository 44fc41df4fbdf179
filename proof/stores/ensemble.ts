import { type ServerName, serverAvailability } from '../../test/servers/availability.js'
import type { Server } from '../../test/servers/server.js'
import { WallClock } from '../../test/servers/wall-clock.js'
import { clientClocks, clientNemeses, processNemeses, versionNemeses } from '../nemeses/clients.js'
import { packetNemeses } from '../nemeses/network.js'
import { hasClients, killedServers, pausedServers } from '../nemeses/servers.js'
import { slowly } from '../nemeses/slowly.js'
import type { Choice, Nemesis } from '../nemesis.js'
import type { ProvedStore } from '../store.js'

interface StartedEnsemble {
  readonly servers: readonly Server[]
  readonly url: string
  leader(): Promise<Server>
  stop(): Promise<void>
}

export interface Ensemble
  extends Pick<ProvedStore, 'name' | 'title' | 'page' | 'leaseMs' | 'askedLeaseMs' | 'setup'> {
  readonly needs: ServerName
  startServers(): Promise<StartedEnsemble>
  /** What its page says about a leader that sleeps for longer than a lease. */
  readonly leaderPauseExcuse?: string
}

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
          ...serverNemeses(started, store),
          ...packetNemeses(leaseMs, async (choice) => [usedServer(started, choice).port]),
          ...(canMove ? clientClocks(clock, leaseMs) : []),
        ],
        wayOf: async (worker) => ({
          url: started.url,
          ...(canMove && worker < 2 && { env: clock.env }),
        }),
        async stop() {
          await started.stop()
          clock.dispose()
        },
      }
    },
  }
}

/** One that has clients at this moment, if any has. */
function usedServer({ servers }: StartedEnsemble, choice: Choice): Server {
  const used = servers.filter(hasClients)
  return choice.one(used.length > 0 ? used : servers)
}

function serverNemeses(
  { servers, leader }: StartedEnsemble,
  { leaseMs, leaderPauseExcuse }: Ensemble,
): Nemesis[] {
  const theLeader = async (): Promise<Server[]> => [await leader()]
  return [
    killedServers('the leader', leaseMs, theLeader),
    killedServers('one of the servers', leaseMs, async (choice) => [choice.one(servers)]),
    ...pausedServers('the leader', leaseMs, theLeader, leaderPauseExcuse),
    ...pausedServers('all servers', leaseMs, async () => servers, leaderPauseExcuse),
    {
      name: 'rolling restart of the servers (`kill -9`)',
      hits: 'servers',
      lastsMs: 0,
      async begin() {
        return slowly(async () => {
          for (const server of servers) await server.restart({ keepData: true })
          return async () => {}
        })
      },
    },
  ]
}
