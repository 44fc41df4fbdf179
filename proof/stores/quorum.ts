import type { TcpProxy } from '../../test/servers/proxy.js'
import { type MemberKind, quorumAvailability, startQuorum } from '../../test/servers/quorum.js'
import { WallClock } from '../../test/servers/wall-clock.js'
import {
  clientClocks,
  clientNemeses,
  clientsWithoutDescriptors,
  processNemeses,
  versionNemeses,
} from '../nemeses/clients.js'
import { packetNemeses, proxyNemeses } from '../nemeses/network.js'
import {
  forgetfulServers,
  type Hit,
  killedServers,
  pausedServers,
  restartedServers,
  serverClockDrifts,
} from '../nemeses/servers.js'
import { shuffled } from '../nemesis.js'
import type { ProvedStore } from '../store.js'

const LEASE_MS = 2000
/** A member that has lost its data is out for so long. */
const LONGEST_LEASE_MS = 3000
const REJOINED_MS = LONGEST_LEASE_MS + 1500
const OPTIONS = { longestLease: LONGEST_LEASE_MS, memberTimeout: 600 }

export const quorum = quorumOf(['redis', 'redis', 'redis'], {
  name: 'quorum',
  title: 'A quorum of three Redis',
  setup: 'three Redis servers with `appendfsync always`',
  minority: 'one member',
})

export const quorumOfFive = quorumOf(['redis', 'redis', 'redis', 'redis', 'redis'], {
  name: 'quorum-five',
  title: 'A quorum of five Redis',
  setup: 'five Redis servers with `appendfsync always`',
  minority: 'two members',
})

export const quorumOfDatabases = quorumOf(['postgres', 'mariadb', 'sqlite'], {
  name: 'quorum-databases',
  title: 'A quorum of three databases',
  setup: 'a PostgreSQL server, a MariaDB server and a SQLite file',
  minority: 'one server',
})

interface Words {
  readonly name: string
  readonly title: string
  readonly setup: string
  /** How the report calls the members that a fault hits. */
  readonly minority: string
}

/** A file is a member without a server: faults hit the others. */
function quorumOf(kinds: readonly MemberKind[], { name, title, setup, minority }: Words): ProvedStore {
  return {
    ...{ name, title, page: 'quorum', leaseMs: LEASE_MS, hasSemaphores: false },
    setup: `${setup}; no semaphore, which a quorum does not have`,
    missing: [
      { fault: 'a majority back without its data', reason: 'nothing is promised then' },
      {
        fault: 'jumping clocks, disks and file descriptors of members',
        reason: 'see the runs with one server',
      },
    ],
    obstacle: () => quorumAvailability(kinds),
    async start() {
      const clock = new WallClock()
      const canMove = clock.obstacle === null
      const memberClock = new WallClock()
      const clocks = canMove ? [memberClock] : []
      const servers = await startQuorum(kinds, { persistence: 'always', clocks })
      const members = kinds.flatMap((kind, member) => (kind === 'sqlite' ? [] : [servers.server(member)]))
      const few: Hit = {
        name: minority,
        servers: ({ random }) => shuffled(members, random).slice(0, servers.minority),
      }
      const all: Hit = { name: 'all servers', isAll: true, servers: () => members }
      return {
        nemeses: [
          ...clientNemeses(LEASE_MS),
          ...processNemeses(LEASE_MS),
          ...versionNemeses(LEASE_MS),
          clientsWithoutDescriptors(LEASE_MS),
          ...pausedServers(few, LEASE_MS),
          ...pausedServers(all, LEASE_MS),
          ...killedServers(few, LEASE_MS),
          ...killedServers(all, LEASE_MS),
          restartedServers(members),
          // Before others lose their data, these have to take part again.
          { ...forgetfulServers(few, LEASE_MS), lastsMs: REJOINED_MS },
          ...proxyNemeses(LEASE_MS),
          ...packetNemeses(LEASE_MS, 'some servers', async (choice) =>
            (await few.servers(choice)).map(({ port }) => port),
          ),
          ...(canMove ? clientClocks(clock, LEASE_MS) : []),
          ...(canMove ? serverClockDrifts('one member', memberClock, LEASE_MS) : []),
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
}
