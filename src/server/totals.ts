import { iso } from './lines.js'
import type { Poller } from './poller.js'
import type { SpaceTotals } from './shapes.js'

/** The sums of the last look, as answers and events tell them. */
export function totalsOf({ lines, totals, asOfMs }: Poller): SpaceTotals {
  const { held, waiting, waitingSinceMs } = totals
  return {
    total: lines.size,
    held,
    waiting,
    longestWaitMs: waitingSinceMs === null ? null : Math.max(0, Math.round(asOfMs - waitingSinceMs)),
    asOf: iso(asOfMs),
  }
}
