import type { Finding } from '../../contract/store.js'

/** Differences below this are ignored: a message takes time, too. */
const CLOCK_MS = 1000

const LEASES_ARE_SAFE =
  'This does not affect leases, but a jump of that clock does, and fences after a failover depend on it: run NTP on both.'

/**
 * Compares a server's clock with this machine's, read before and after the question. `meaning`:
 * what a difference leads to, and what to do.
 */
export function checkClock(
  serverMs: number,
  beforeMs: number,
  afterMs: number,
  meaning = LEASES_ARE_SAFE,
): Finding {
  const about = 'clock'
  const apartMs = Math.max(0, beforeMs - serverMs, serverMs - afterMs)
  if (apartMs < CLOCK_MS)
    return { level: 'fine', about, text: "The server's clock agrees with this machine's." }
  const text = `The server's clock is ${Math.round(apartMs / 1000)} s apart from this machine's. ${meaning}`
  return { level: 'risk', about, text }
}
