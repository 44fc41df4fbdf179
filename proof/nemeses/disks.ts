import { nothing } from '../../src/base/nothing.js'
import type { TinyDisk } from '../../test/faults/tiny-disk.js'
import type { Server } from '../../test/servers/server.js'
import type { SlowDisk } from '../../test/servers/slow-disk.js'
import type { Nemesis } from '../nemesis.js'
import { startAll } from './servers.js'

const DELAY_MS = 300

/** Of processes that were started with this disk. */
export function slowDisk(disk: SlowDisk, leaseMs: number): Nemesis {
  return {
    name: `slow disk: each sync takes ${DELAY_MS} ms longer`,
    hits: 'disk',
    lastsMs: 1.5 * leaseMs,
    async begin() {
      const before = disk.delays
      disk.set(DELAY_MS)
      return async () => {
        disk.set(0)
        return disk.delays - before
      }
    },
  }
}

/** `before`: what has to be done so that the next write needs space. */
export function fullDisk(disk: TinyDisk, leaseMs: number, before: () => void = nothing): Nemesis {
  return {
    name: 'disk full',
    hits: 'disk',
    lastsMs: 1.2 * leaseMs,
    async begin() {
      before()
      disk.fill()
      return async () => disk.empty()
    },
  }
}

/** Of a server that ends when it cannot write: all that it has acknowledged is kept. */
export function fullDiskOf(server: Server, disk: TinyDisk, leaseMs: number): Nemesis {
  const full = fullDisk(disk, leaseMs)
  return {
    ...full,
    name: 'disk full: the server ends, and is started again',
    stopsAll: true,
    endsHolds: true,
    async begin(crowd, choice) {
      const heal = await full.begin(crowd, choice)
      return async () => {
        const hasEnded = !server.isRunning
        await heal()
        await startAll([server])
        return hasEnded ? 1 : 0
      }
    },
  }
}
