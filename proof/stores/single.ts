import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { noTinyDisk, TinyDisk } from '../../test/faults/tiny-disk.js'
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
import { fullDiskOf, slowDisk } from '../nemeses/disks.js'
import { packetNemeses, proxyNemeses } from '../nemeses/network.js'
import { type Hit, pausedServers, serverClocks } from '../nemeses/servers.js'
import type { Nemesis } from '../nemesis.js'
import type { ProvedStore } from '../store.js'

/** What a server has of its own. Each is left out where it cannot be made here. */
interface OwnPlace {
  readonly clock?: WallClock
  readonly disk?: SlowDisk
  readonly parent?: string
}

export interface SingleServer<T extends Server>
  extends Pick<ProvedStore, 'name' | 'title' | 'page' | 'leaseMs' | 'askedLeaseMs' | 'setup' | 'missing'> {
  readonly needs: ServerName
  startServer(own: OwnPlace): Promise<T>
  /** It waits for the disk before it answers. */
  readonly usesDisk?: boolean
  /** It ends when its disk is full. The disk has so many megabytes. */
  readonly tinyDiskMb?: number
  /** The store's URL, with the address of the server or of a proxy in front of it. */
  urlAt(address: string, worker: number): string
  /** What its page says about a server's clock that is set ahead; none: its clock stays alone. */
  readonly clockExcuse?: string
  /** The same about the clocks of clients, where they matter. */
  readonly clientClockExcuse?: string
  /** What it survives beyond what every store does. */
  more(hit: Hit, leaseMs: number, server: T): Nemesis[]
}

/** Reasons why a fault is not made. */
export const LOG_TAKES_SPACE = {
  fault: 'full disk',
  reason: 'the server writes its log into files that have their size from the start',
}
export const NO_ONE_DELETES = {
  fault: 'the server back without its data',
  reason: 'a database that loses its files is not promised anything',
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
      const tiny = tinyDisk(store.tinyDiskMb)
      const server = await store.startServer({
        ...(canMove && { clock: clocks.server }),
        ...(canSlow && { disk }),
        ...(tiny && { parent: tiny.folder }),
      })
      const hit: Hit = { name: 'the server', isAll: true, servers: () => [server] }
      const moved = canMove ? clientClocks(clocks.client, leaseMs, clientClockExcuse) : []
      if (canMove && clockExcuse !== undefined)
        moved.push(...serverClocks(hit.name, clocks.server, leaseMs, clockExcuse))
      return {
        nemeses: [
          ...clientNemeses(leaseMs),
          ...processNemeses(leaseMs),
          ...versionNemeses(leaseMs),
          clientsWithoutDescriptors(leaseMs),
          ...pausedServers(hit, leaseMs),
          ...store.more(hit, leaseMs, server),
          ...proxyNemeses(leaseMs),
          ...packetNemeses(leaseMs, 'all servers', async () => [server.port]),
          ...moved,
          ...(canSlow && store.usesDisk ? [slowDisk(disk, leaseMs)] : []),
          ...(tiny ? [fullDiskOf(server, tiny, leaseMs)] : []),
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
          tiny?.dispose()
          if (tiny) rmSync(dirname(tiny.folder), { recursive: true })
        },
      }
    },
  }
}

function tinyDisk(megabytes: number | undefined): TinyDisk | null {
  if (megabytes === undefined || noTinyDisk() !== null) return null
  return new TinyDisk(join(mkdtempSync(join(tmpdir(), 'holdfast-disk-')), 'disk'), megabytes)
}
