/** The last claim of ours in a line, which nobody else was in. */
export interface Departure {
  readonly sequence: number
  /** The transaction in which it left. */
  readonly zxid: bigint
}

/** So many lines are remembered; of the others a list is asked for. */
const MOST = 1000

/**
 * Lines that this client left empty. Where the next claim there has the number that follows, nobody has come since, and no list is needed.
 *
 * The one exception: the line's node, which the servers remove some time after it was left empty, was made anew, and its numbers begin again.
 * But to come to the same number, at least as many transactions as that are needed: one for each claim. With fewer than half of them in
 * the whole ensemble since we left, it is still the same node.
 */
export class Emptied {
  readonly #departures = new Map<string, Departure>()

  remember(resource: string, departure: Departure): void {
    this.#departures.delete(resource)
    this.#departures.set(resource, departure)
    if (this.#departures.size <= MOST) return
    for (const oldest of this.#departures.keys()) {
      this.#departures.delete(oldest)
      return
    }
  }

  /** Good for one claim, which is the next one or is not. */
  take(resource: string): Departure | undefined {
    const departure = this.#departures.get(resource)
    this.#departures.delete(resource)
    return departure
  }
}

/** Whether a claim that was made in transaction `zxid` is alone in its line. */
export function isAlone(sequence: number, zxid: bigint, departure: Departure): boolean {
  const passed = Number(zxid - departure.zxid)
  return sequence === departure.sequence + 1 && passed > 0 && passed < sequence / 2
}
