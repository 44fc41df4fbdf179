import { serverAvailability } from '../../test/servers/availability.js'
import type { TcpProxy } from '../../test/servers/proxy.js'
import { startQuorum } from '../../test/servers/quorum.js'
import { WallClock } from '../../test/servers/wall-clock.js'
import { clientClocks, clientNemeses, clientsWithoutDescriptors, processNemeses } from '../nemeses/clients.js'
import { packetNemeses, proxyNemeses } from '../nemeses/network.js'
import {
  forgetfulServers,
  killedServers,
  pausedServers,
  serverClockDrift,
  type Targets,
} from '../nemeses/servers.js'
import type { ProvedStore } from '../store.js'

const LEASE_MS = 2000
/** A member that has lost its data is out for so long. */
const LONGEST_LEASE_MS = 3000
const REJOINED_MS = LONGEST_LEASE_MS + 1500
const OPTIONS = { longestLease: LONGEST_LEASE_MS, memberTimeout: 600 }

export const quorum: ProvedStore = {
  name: 'quorum',
  title: 'A quorum of three Redis',
  page: 'quorum',
  leaseMs: LEASE_MS,
  hasSemaphores: false,
  setup: 'three Redis servers with `appendfsync always`; no semaphore, which a quorum does not have',
  obstacle: () => serverAvailability('redis'),
  async start() {
    const clock = new WallClock()
    const canMove = clock.obstacle === null
    const memberClock = new WallClock()
    const clocks = canMove ? [memberClock] : []
    const servers = await startQuorum(['redis', 'redis', 'redis'], { persistence: 'always', clocks })
    const members = [0, 1, 2].map((member) => servers.server(member))
    const one: Targets = async (choice) => [choice.one(members)]
    const all: Targets = async () => members
    const forgetful = forgetfulServers('one member', LEASE_MS, one)
    return {
      nemeses: [
        ...clientNemeses(LEASE_MS),
        ...processNemeses(LEASE_MS),
        clientsWithoutDescriptors(LEASE_MS),
        ...pausedServers('one member', LEASE_MS, one),
        ...pausedServers('all members', LEASE_MS, all),
        killedServers('one member', LEASE_MS, one),
        killedServers('all members', LEASE_MS, all),
        // Before the next member loses its data, this one has to take part again.
        { ...forgetful, lastsMs: REJOINED_MS },
        ...proxyNemeses(LEASE_MS),
        ...packetNemeses(LEASE_MS, async (choice) => [choice.one(members).port]),
        ...(canMove ? clientClocks(clock, LEASE_MS) : []),
        ...(canMove ? [serverClockDrift('one member', memberClock, LEASE_MS)] : []),
      ],
      async wayOf(worker) {
        const ways = await servers.ways()
        return {
          ...{ url: ways.url, members: ways.urls, quorum: OPTIONS },
          proxies: ways.proxies.filter((proxy): proxy is TcpProxy => proxy !== null),
          ...(canMove && worker < 2 && { env: clock.env }),
        }
      },
      async stop() {
        await servers.stop()
        for (const each of [clock, memberClock]) each.dispose()
      },
    }
  },
}
