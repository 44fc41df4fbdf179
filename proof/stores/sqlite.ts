import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { noTinyDisk, TinyDisk } from '../../test/faults/tiny-disk.js'
import { preloaded } from '../../test/servers/preload.js'
import { SlowDisk } from '../../test/servers/slow-disk.js'
import { WallClock } from '../../test/servers/wall-clock.js'
import { clientClockJump, clientNemeses, processNemeses, versionNemeses } from '../nemeses/clients.js'
import { fullDisk, slowDisk } from '../nemeses/disks.js'
import type { ProvedStore } from '../store.js'

const LEASE_MS = 2000
/** SQLite's log grows to some 4 MB before it is moved into the file. */
const MEGABYTES = 32

export const sqlite: ProvedStore = {
  name: 'sqlite',
  title: 'SQLite',
  page: 'sqlite',
  leaseMs: LEASE_MS,
  setup: 'one file that all processes share',
  missing: [
    {
      fault: 'clocks of clients that run fast or slow',
      reason: 'all processes share the clock of the machine',
    },
    { fault: 'out of file descriptors', reason: 'a process opens the file once' },
  ],
  obstacle: () => null,
  async start() {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-proof-'))
    const clock = new WallClock()
    const slow = new SlowDisk()
    const disk = noTinyDisk() === null ? new TinyDisk(join(folder, 'disk'), MEGABYTES) : null
    const file = join(disk?.folder ?? folder, 'locks.db')
    const canMove = clock.obstacle === null
    return {
      nemeses: [
        ...clientNemeses(LEASE_MS),
        ...processNemeses(LEASE_MS),
        ...versionNemeses(LEASE_MS),
        ...(canMove ? [clientClockJump(clock, LEASE_MS)] : []),
        ...(disk ? [fullDisk(disk, LEASE_MS, () => emptyLog(file))] : []),
        ...(slow.obstacle === null ? [slowDisk(slow, LEASE_MS)] : []),
      ],
      wayOf: async (worker) => ({
        url: `sqlite:${file}`,
        env: preloaded(canMove && worker < 2 ? clock : undefined, slow.obstacle === null ? slow : undefined),
      }),
      async stop() {
        disk?.dispose()
        for (const each of [clock, slow]) each.dispose()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  },
}

/** SQLite writes over its log again and again: on a full disk, too, unless the log is empty. */
function emptyLog(file: string): void {
  const database = new Database(file, { timeout: 500 })
  try {
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // A process was stopped inside its transaction. Then the others are blocked already.
  } finally {
    database.close()
  }
}
