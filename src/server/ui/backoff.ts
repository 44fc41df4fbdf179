const FIRST_MS = 500
const MOST_MS = 15_000

/**
 * How long to wait before attempt number `attempt`, which counts from 0. A half of it is left to
 * chance, so that the pages of many people do not come back in the same moment.
 */
export function backoffMs(attempt: number, chance: number): number {
  const whole = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(attempt, 10))
  return Math.round(whole / 2 + (whole / 2) * chance)
}
