/** What the admission rule needs to know of a claim. */
export interface Place {
  readonly permits: number
  readonly granted: boolean
}

/**
 * The one admission rule: the granted claims of a line are its longest prefix whose permits fit the capacity.
 * Gives the claims that are to be granted now, in order. The line is read only as far as needed.
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
 * What a waiting claim waits for. First come those that bar it each by themselves (a writer bars a reader: all of these must
 * leave); if no single claim does, any of the ones ahead leaving may help. Empty: nothing bars it.
 */
export function blockers<C extends Place>(line: Iterable<C>, claim: C, capacity: number): C[] {
  const ahead: C[] = []
  for (const other of line) {
    if (other === claim) break
    ahead.push(other)
  }
  const used = ahead.reduce((sum, other) => sum + other.permits, 0)
  if (used + claim.permits <= capacity) return []
  const barring = ahead.filter((other) => other.permits + claim.permits > capacity)
  return barring.length > 0 ? barring : ahead
}
