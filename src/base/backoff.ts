/**
 * How long to wait before attempt number `attempt` (1 is the first repetition): doubling from `firstMs` to `mostMs`, with the
 * upper half of the wait drawn at random, so that clients that failed together do not come back together.
 */
export function backoffMs(attempt: number, random: number, firstMs: number, mostMs: number): number {
  const fullMs = Math.min(mostMs, firstMs * 2 ** Math.min(attempt - 1, 30))
  return fullMs * (0.5 + random / 2)
}
