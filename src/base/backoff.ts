/**
 * The pause before retry number `attempt` (the first is 1): doubles from `firstMs` to `mostMs`.
 * Half of it is random, so that clients that failed together do not retry together.
 */
export function backoffMs(attempt: number, random: number, firstMs: number, mostMs: number): number {
  const fullMs = Math.min(mostMs, firstMs * 2 ** Math.min(attempt - 1, 30))
  return fullMs * (0.5 + random / 2)
}
