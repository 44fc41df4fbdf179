/** The part of a claim that the admission rule needs. */
export interface Place {
  readonly permits: number
  readonly granted: boolean
}

/**
 * The one admission rule: the granted claims of a line are its longest prefix whose permits fit the
 * capacity. Returns the claims to grant now, in order. Reads the line only as far as needed.
 */
export function admit<C extends Place>(line: Iterable<C>, capacity: number): C[] {
  const admitted: C[] = []
  let used = 0
  for (const claim of line) {
    if (!claim.granted) {
      if (used + claim.permits > capacity) break
      admitted.push(claim)
    }
    used += claim.permits
  }
  return admitted
}

/**
 * The claims that a waiting claim waits for: those that each block it alone (a writer blocks a
 * reader), which must all leave. If no single claim does, all claims ahead: any of them may make
 * room. Empty: nothing blocks it.
 */
export function blockers<C extends Place>(line: Iterable<C>, claim: C, capacity: number): C[] {
  const ahead: C[] = []
  for (const other of line) {
    if (other === claim) break
    ahead.push(other)
  }
  const used = ahead.reduce((sum, other) => sum + other.permits, 0)
  if (used + claim.permits <= capacity) return []
  const blocking = ahead.filter((other) => other.permits + claim.permits > capacity)
  return blocking.length > 0 ? blocking : ahead
}
