import { type ServerName, serverAvailability } from '../../test/servers/availability.js'
import { TcpProxy } from '../../test/servers/proxy.js'
import type { Server } from '../../test/servers/server.js'
import { SlowDisk } from '../../test/servers/slow-disk.js'
import { WallClock } from '../../test/servers/wall-clock.js'
import {
  clientClocks,
  clientNemeses,
  clientsWithoutDescriptors,
  processNemeses,
  versionNemeses,
} from '../nemeses/clients.js'
import { slowDisk } from '../nemeses/disks.js'
import { packetNemeses, proxyNemeses } from '../nemeses/network.js'
import { pausedServers, serverClocks } from '../nemeses/servers.js'
import type { Nemesis } from '../nemesis.js'
import type { ProvedStore } from '../store.js'

export const THE_SERVER = 'the server'

export interface SingleServer<T extends Server>
  extends Pick<ProvedStore, 'name' | 'title' | 'page' | 'leaseMs' | 'askedLeaseMs' | 'setup'> {
  readonly needs: ServerName
  /** Each is undefined where it cannot be made here. */
  startServer(clock: WallClock | undefined, disk: SlowDisk | undefined): Promise<T>
  /** It waits for the disk before it answers. */
  readonly usesDisk?: boolean
  /** The store's URL, with the address of the server or of a proxy in front of it. */
  urlAt(address: string, worker: number): string
  /** What its page says about a server's clock that is set ahead; none: its clock stays alone. */
  readonly clockExcuse?: string
  /** The same about the clocks of clients, where they matter. */
  readonly clientClockExcuse?: string
  /** What it survives beyond what every store does. */
  more(targets: () => Promise<T[]>, leaseMs: number): Nemesis[]
}

/** A store on one server: some of the workers reach it through proxies, some have their own clock. */
export function singleServer<T extends Server>(store: SingleServer<T>): ProvedStore {
  const { leaseMs, clockExcuse, clientClockExcuse } = store
  return {
    ...store,
    obstacle: () => serverAvailability(store.needs),
    async start() {
      const clocks = { server: new WallClock(), client: new WallClock() }
      const canMove = clocks.server.obstacle === null
      const disk = new SlowDisk()
      const canSlow = disk.obstacle === null
      const server = await store.startServer(canMove ? clocks.server : undefined, canSlow ? disk : undefined)
      const targets = async () => [server]
      const moved = canMove ? clientClocks(clocks.client, leaseMs, clientClockExcuse) : []
      if (canMove && clockExcuse !== undefined)
        moved.push(...serverClocks(THE_SERVER, clocks.server, leaseMs, clockExcuse))
      return {
        nemeses: [
          ...clientNemeses(leaseMs),
          ...processNemeses(leaseMs),
          ...versionNemeses(leaseMs),
          clientsWithoutDescriptors(leaseMs),
          ...pausedServers(THE_SERVER, leaseMs, targets),
          ...store.more(targets, leaseMs),
          ...proxyNemeses(leaseMs),
          ...packetNemeses(leaseMs, async () => [server.port]),
          ...moved,
          ...(canSlow && store.usesDisk ? [slowDisk(disk, leaseMs)] : []),
        ],
        async wayOf(worker) {
          const proxy = worker % 2 === 0 ? await TcpProxy.start(server.port) : null
          return {
            url: store.urlAt(`127.0.0.1:${proxy?.port ?? server.port}`, worker),
            ...(proxy && { proxies: [proxy] }),
            ...(canMove && worker < 2 && { env: clocks.client.env }),
          }
        },
        async stop() {
          await server.stop()
          for (const each of [clocks.server, clocks.client, disk]) each.dispose()
        },
      }
    },
  }
}
