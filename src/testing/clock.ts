import { systemEnv } from '../base/env.js'
import { machineClock } from '../stores/sqlite/machine-clock.js'

/**
 * Monotonic milliseconds, the same for every process of this machine: the checks compare times of
 * several. `systemEnv.now()` is not, on Bun and Deno: there it counts from the start of a process.
 */
export const now: () => number = sharedClock()

function sharedClock(): () => number {
  try {
    return machineClock()
  } catch {
    // Bun and Deno elsewhere than on Linux: cases with several processes prove nothing there.
    return systemEnv.now
  }
}
