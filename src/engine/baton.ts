/** How many holds one grant serves while others wait in the store, and how many pass by before the store is asked whether they do. */
const HOLDS_PER_TURN = 64
/** And for how long it does while others wait. Where holds are longer than a few round trips, passing them on gains little. */
const LONGEST_TURN_MS = 50
/** Whoever wants it now will want it again before the turn is over. */
const TURNS_AHEAD = 4

/**
 * What the neighbours in one process pass on: a grant of the store, with the fences that were reserved for it. It has one
 * bearer at a time, the hold that stands on it.
 */
export class Baton {
  /** The fence by which the store knows the grant; 0: not granted yet. */
  grant = 0
  /** Others wait in the store for it, or the store has not said that nobody does. */
  #isWanted = true
  /** When the last word came that they do. */
  #wantedAt = -Infinity
  #isKept = false
  #nextFence = 0
  #endFence = 0
  #grantedAt = 0
  #served = 0

  /** How many fences the claim asks for. */
  readonly block: number
  /** How many fences the store gives at once. */
  readonly #mostFences: number

  /** For a claim that is about to be sent, with so many who want it here. A lone one needs no more fences than its own. */
  constructor(wanting: number, mostFences: number) {
    this.#mostFences = Math.min(mostFences, HOLDS_PER_TURN)
    this.block = wanting > 1 ? Math.min(wanting * TURNS_AHEAD, this.#mostFences) : 1
  }

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

  /** The store says that others wait for it. */
  isWantedFrom(now: number): void {
    this.#isWanted = true
    this.#wantedAt = Math.max(this.#wantedAt, now)
  }

  /** The store has said that nobody waits for it, to a question of that moment: what has been heard since is newer. */
  wasFree(askedAt: number): void {
    if (askedAt > this.#wantedAt) this.#isWanted = false
  }

  /** It ends with its present bearer, who did something with it that the next one must not inherit. */
  keep(): void {
    this.#isKept = true
  }

  /** Whether it may go to one more neighbour. */
  canGoOn(now: number): boolean {
    if (this.#isKept) return false
    return !this.#isWanted || (this.#served < HOLDS_PER_TURN && now - this.#grantedAt < LONGEST_TURN_MS)
  }

  /** How many further fences to ask for: no more than it may still serve. */
  get furtherFences(): number {
    const left = this.#isWanted ? Math.max(1, HOLDS_PER_TURN - this.#served) : HOLDS_PER_TURN
    return Math.min(left, this.#mostFences)
  }
}
