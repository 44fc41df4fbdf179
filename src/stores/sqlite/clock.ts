import { readFileSync } from 'node:fs'
import { HoldfastError } from '../../base/errors.js'
import { unavailable } from '../../drivers/sqlite-failures.js'

/** Of two processors' clocks; far below any lease. */
const TOLERANCE_MS = 1000

/** What the file remembers of the clock that its times belong to. */
export interface Era {
  /** The machine's start that the times count from; where the system does not tell it, a mark made by the first process. */
  readonly boot: string
  /** The last moment at which somebody wrote. */
  readonly seen: number
}

/** Linux tells which start of the machine this is. null elsewhere. */
export function readBootId(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch (error) {
    // A Deno that may not read it would not know that a file which others have made is of this start.
    if (error instanceof Error && error.name === 'NotCapable') throw notTold(error)
    return null
  }
}

function notTold(cause: unknown): HoldfastError {
  const message =
    'Deno does not let this process read which start of the machine this is, to which the times in a lock file belong; run it with --allow-all'
  return new HoldfastError('UNSUPPORTED', message, { store: 'sqlite', cause })
}

/** Whether the times in the file are of an earlier start of the machine. Asked once, by a process that opens the file. */
export function isOfEarlierBoot(era: Era, bootId: string | null, now: number): boolean {
  const isBehind = now < era.seen - TOLERANCE_MS
  if (bootId === null) return isBehind
  if (bootId !== era.boot) return true
  // The same start, and yet another clock: a container with a time namespace of its own.
  if (isBehind) throw foreignClock()
  return false
}

/** Throws if the file has come under another clock since this process opened it. */
export function checkEra(era: Era, boot: string, now: number): void {
  if (era.boot !== boot || now < era.seen - TOLERANCE_MS) throw foreignClock()
}

function foreignClock(): Error {
  return unavailable(
    'The lock file is being used from two machines, or from two containers with different clocks; an SQLite file works for the processes of one machine only, so give each its own or take a store with a server',
  )
}
