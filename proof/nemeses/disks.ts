import type { SlowDisk } from '../../test/servers/slow-disk.js'
import type { Nemesis } from '../nemesis.js'

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
