import { readFileSync } from 'node:fs'
import { HoldfastError } from '../../base/errors.js'
import { unavailable } from '../../drivers/sqlite-failures.js'

/** Two processors' clocks may differ; far below any lease. */
const TOLERANCE_MS = 1000

/** What the file remembers of the clock that its times belong to. */
export interface FileClock {
  /** The boot that the times count from. Without a boot id, a random mark. */
  readonly boot: string
  /** The time of the last write. */
  readonly seen: number
}

/** The id of this boot of the machine. null: the system is not Linux and has none. */
export function readBootId(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch (error) {
    // Without the id, Deno could not tell that a file of other processes belongs to this boot.
    if (error instanceof Error && error.name === 'NotCapable') throw bootIdHidden(error)
    return null
  }
}

function bootIdHidden(cause: unknown): HoldfastError {
  const message =
    'Deno does not let this process read the boot id of the machine, which the times in a lock file need; run it with --allow-all'
  return new HoldfastError('UNSUPPORTED', message, { store: 'sqlite', cause })
}

/** Whether the times in the file belong to an earlier boot. Asked when the file is opened. */
export function isOfEarlierBoot(clock: FileClock, bootId: string | null, now: number): boolean {
  const isBehind = now < clock.seen - TOLERANCE_MS
  if (bootId === null) return isBehind
  if (bootId !== clock.boot) return true
  // The same boot, but another clock: a container with its own time namespace.
  if (isBehind) throw foreignClock()
  return false
}

/** Throws if the file has got another clock since this process opened it. */
export function checkClock(clock: FileClock, boot: string, now: number): void {
  if (clock.boot !== boot || now < clock.seen - TOLERANCE_MS) throw foreignClock()
}

function foreignClock(): Error {
  return unavailable(
    'The lock file is being used from two machines, or from two containers with different clocks; an SQLite file works for the processes of one machine only, so give each its own or use a store with a server',
  )
}
