/** A claim of ours that was alone in its line and has left it. */
export interface Departure {
  readonly sequence: number
  /** The transaction in which it left. */
  readonly zxid: bigint
}

/** How many lines are remembered. A claim in any other one lists it. */
const MOST_LINES = 1000

/**
 * Lines that this client left empty. If our next claim there gets the number that follows, no other
 * claim came in between, and no list is needed.
 *
 * One exception: the servers remove the line's node some time after it was left empty, and the
 * numbers of a new one begin again. But to reach number n again takes n transactions, one for each
 * claim. With fewer than n / 2 of them in the whole ensemble since we left, it is still the same
 * node.
 */
export class EmptiedLines {
  readonly #departures = new Map<string, Departure>()

  remember(resource: string, departure: Departure): void {
    this.#departures.delete(resource)
    this.#departures.set(resource, departure)
    if (this.#departures.size <= MOST_LINES) return
    for (const oldest of this.#departures.keys()) {
      this.#departures.delete(oldest)
      return
    }
  }

  /** Good for one claim: only the next one can have the number that follows. */
  take(resource: string): Departure | undefined {
    const departure = this.#departures.get(resource)
    this.#departures.delete(resource)
    return departure
  }
}

/** Whether a claim that joined in transaction `zxid` is alone in its line. */
export function isAlone(sequence: number, zxid: bigint, departure: Departure): boolean {
  const passed = Number(zxid - departure.zxid)
  return sequence === departure.sequence + 1 && passed > 0 && passed < sequence / 2
}
