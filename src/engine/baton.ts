/** How many holds one grant serves while others wait in the store, and how many pass by before the store is asked whether they do. */
const HOLDS_PER_TURN = 64
/** And for how long it does while others wait. Where holds are longer than a few round trips, passing them on gains little. */
const LONGEST_TURN_MS = 50

/**
 * What the neighbours in one process pass on, or share if they are readers: a grant of the store, with the fences that were
 * reserved for it.
 */
export class Baton {
  /** The fence by which the store knows the grant; 0: not granted yet. */
  grant = 0
  #isWanted: boolean | undefined
  #wantedAt = -Infinity
  #isKept = false
  #nextFence = 0
  #endFence = 0
  #grantedAt = 0
  #holds = 0

  /** How many fences the claim asks for. */
  readonly block: number
  /** How many fences the store gives at once. */
  readonly #mostFences: number
  /** Those to whom alone it goes, because they are next in the store's own line; null: to the neighbours, who have no place there. */
  readonly #heirs: string[] | null

  /** For a claim that is about to be sent, and could use so many fences. */
  constructor(fences: number, mostFences: number, heirs: readonly string[] | null = null) {
    this.#mostFences = Math.min(mostFences, HOLDS_PER_TURN)
    this.block = Math.min(fences, this.#mostFences)
    this.#heirs = heirs && [...heirs]
  }

  get hasHeirs(): boolean {
    return this.#heirs !== null
  }

  /** The next one in the store's line, who is passed by if it does not take it. */
  nextHeir(): string | undefined {
    return this.#heirs?.shift()
  }

  /** The store has granted the claim. */
  granted(grant: number, now: number): void {
    this.grant = grant
    this.#grantedAt = now
    this.#holds = 0
    this.refill(grant, this.block)
  }

  /** Further fences, from a call that has checked that the grant stands. */
  refill(first: number, count: number): void {
    this.#nextFence = first
    this.#endFence = first + count
  }

  /** For the next hold. Each is given out once. */
  takeFence(): number {
    this.#holds++
    return this.#nextFence++
  }

  get isOutOfFences(): boolean {
    return this.#nextFence >= this.#endFence
  }

  /** Whether others wait in the store for it; undefined: it has not said so. */
  get isWanted(): boolean | undefined {
    return this.#isWanted
  }

  /** Somebody has begun to wait in the store. */
  wanted(now: number): void {
    this.#isWanted = true
    this.#wantedAt = now
  }

  /** The store has answered a call, and knows whether anybody waits; undefined: it cannot tell. What was heard of somebody later may have overtaken it. */
  answered(isWanted: boolean | undefined, sentAt: number): void {
    if (isWanted) this.#wantedAt = Math.max(this.#wantedAt, sentAt)
    this.#isWanted = this.#wantedAt >= sentAt ? true : isWanted
  }

  /** What is left is not for those who come later. */
  dropFences(): void {
    this.#endFence = this.#nextFence
  }

  /** It ends with its present bearer, who did something with it that the next one must not inherit. */
  keep(): void {
    this.#isKept = true
  }

  /** Whether it may go to one more neighbour. */
  canGoOn(now: number): boolean {
    if (this.#isKept) return false
    // Nobody is kept waiting by those who are next anyway.
    if (this.#heirs) return true
    return (
      this.#isWanted === false || (this.#holds < HOLDS_PER_TURN && now - this.#grantedAt < LONGEST_TURN_MS)
    )
  }

  /** How many further fences may be asked for: no more than it may still serve. */
  get furtherFences(): number {
    if (this.#isKept) return 0
    const left = this.#isWanted === false ? HOLDS_PER_TURN : Math.max(1, HOLDS_PER_TURN - this.#holds)
    return Math.min(left, this.#mostFences)
  }
}
