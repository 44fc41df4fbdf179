/** The clocks of two machines run apart by far less than this. */
const DRIFT_RATE = 0.01
/** Covers the rounding on the way. */
const ROUNDING_MS = 1

/** How much earlier than the store the client takes a deadline to be over. */
export function driftMs(durationMs: number): number {
  return ROUNDING_MS + durationMs * DRIFT_RATE
}

/** Until when a lease of that length can be trusted whose request was sent at `sentAt`. */
export function trustedUntil(sentAt: number, leaseMs: number): number {
  return sentAt + leaseMs - driftMs(leaseMs)
}

/** The lease to ask for so that `validMs` of it can be relied on. */
export function leaseForMs(validMs: number): number {
  return (validMs + ROUNDING_MS) / (1 - DRIFT_RATE)
}
