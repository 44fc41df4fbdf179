/** A lock, the fence of a hold, and from when to when it was surely valid, by true time. */
export type Held = readonly [lock: number, fence: number, from: number, to: number]

export interface HistoryConflicts {
  /** Both valid at one moment. */
  overlaps: Held[][]
  /** The later one with a fence that is not above that of the earlier one. */
  lowered: Held[][]
}

export function conflictsIn(held: readonly Held[]): HistoryConflicts {
  const overlaps: Held[][] = []
  const lowered: Held[][] = []
  const last = new Map<number, Held>()
  for (const later of held.toSorted((one, other) => one[2] - other[2])) {
    const [lock, fence, from, to] = later
    const earlier = last.get(lock)
    if (earlier && from <= earlier[3]) overlaps.push([earlier, later])
    if (earlier && fence <= earlier[1]) lowered.push([earlier, later])
    if (!earlier || to > earlier[3]) last.set(lock, later)
  }
  return { overlaps, lowered }
}
