/** How many holds one grant serves where others wait in the store: the first, and those it is passed on to. */
export const HOLDS_PER_TURN = 16
/** And for how long. Where holds are longer than a few round trips, passing on gains little, and others wait for it. */
export const LONGEST_TURN_MS = 50
/** How many fences are reserved at once where nobody else waits. Also how many holds pass by before the store is asked again. */
const MOST_FENCES = 64

/**
 * What the neighbours in one process pass on: a grant of the store, with the fences that were reserved for it. It has one
 * bearer at a time, the hold that stands on it.
 */
export class Baton {
  /** The fence by which the store knows the grant; 0: not granted yet. */
  grant = 0
  /** Others wait in the store for it, or the store has not said that nobody does. */
  isWanted = true
  #isKept = false
  #nextFence = 0
  #endFence = 0
  #grantedAt = 0
  #served = 0

  /** @param block How many fences the claim has asked for. @param mostFences How many the store gives at once. */
  constructor(
    readonly block: number,
    readonly mostFences: number,
  ) {}

  /** The store has granted the claim. */
  granted(grant: number, now: number): void {
    this.grant = grant
    this.#grantedAt = now
    this.#served = 0
    this.refill(grant, this.block)
  }

  /** Further fences, from a call that has checked that the grant stands. */
  refill(first: number, count: number): void {
    this.#nextFence = first
    this.#endFence = first + count
  }

  /** For the next hold. Each is given out once. */
  takeFence(): number {
    this.#served++
    return this.#nextFence++
  }

  get isOutOfFences(): boolean {
    return this.#nextFence >= this.#endFence
  }

  /** It ends with its present bearer, who did something with it that the next one must not inherit. */
  keep(): void {
    this.#isKept = true
  }

  /** Whether it may go to one more neighbour. */
  canGoOn(now: number): boolean {
    if (this.#isKept) return false
    return !this.isWanted || (this.#served < HOLDS_PER_TURN && now - this.#grantedAt < LONGEST_TURN_MS)
  }

  /** How many fences to ask for, at most as many as it may still serve. */
  get wantedFences(): number {
    const most = Math.min(this.mostFences, MOST_FENCES)
    return this.isWanted ? Math.max(1, Math.min(most, HOLDS_PER_TURN - this.#served)) : most
  }
}
