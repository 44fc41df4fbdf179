/** Longer than a hundred years; beyond it no sum with the clock would be exact. */
const LONGEST_US = 2 ** 52

/** Durations travel as whole microseconds. */
export function toUs(ms: number): number {
  return Math.min(Math.round(ms * 1000), LONGEST_US)
}

/** How often the clients of a database remove what is no longer used: about once, all together. */
export const MAINTENANCE_INTERVAL_MS = 60_000
