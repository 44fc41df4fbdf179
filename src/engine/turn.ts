import type { Capabilities } from '../contract/store.js'

/** How many requests one grant serves while others wait in the store. */
const HOLDS_PER_TURN = 64
/**
 * For how long it does so. Where holds are longer than a few round trips, passing them on gains
 * little.
 */
export const LONGEST_TURN_MS = 50
/** How many fences are reserved at once while nobody else waits, and a push would tell of it. */
const FENCES_WHILE_ALONE = 1024

/** How long a lease may go from request to request, and the fences that it gives out meanwhile. */
export class Turn {
  /** How many fences the claim asks for. */
  block = 1
  /** The present hold was extended, shrunk or exported: the next request must not inherit that. */
  isClosed = false
  readonly #capabilities: Capabilities
  #isWanted: boolean | undefined
  #wantedAt = -Infinity
  #nextFence = 0
  #endFence = 0
  #grantedAt = 0
  #holds = 0
  #hasBlock = false

  constructor(capabilities: Capabilities) {
    this.#capabilities = capabilities
  }

  /** The claim is about to be sent, and could use so many fences. */
  ask(fences: number): void {
    this.block = Math.min(fences, HOLDS_PER_TURN, mostFences(this.#capabilities))
  }

  /** The store has granted the claim, with so many fences from `grant` on. */
  begin(grant: number, fences: number, now: number): void {
    this.#grantedAt = now
    this.refill(grant, fences)
  }

  /** Further fences, from a call that has checked that the grant stands. */
  refill(first: number, count: number): void {
    this.#nextFence = first
    this.#endFence = first + count
    this.#hasBlock ||= count > 1
  }

  /**
   * Whether the store has given several fences at once: only then does it tell that others wait.
   */
  get hasBlock(): boolean {
    return this.#hasBlock
  }

  /** For the next hold. Each is given out once. */
  takeFence(): number {
    this.#holds++
    return this.#nextFence++
  }

  get isOutOfFences(): boolean {
    return this.#nextFence >= this.#endFence
  }

  /** The fences that are left are not for the requests that follow. */
  dropFences(): void {
    this.#endFence = this.#nextFence
  }

  /** Whether a request has been served. */
  get hasBegun(): boolean {
    return this.#holds > 0
  }

  /** Whether others wait in the store; undefined: the store has not said so. */
  get isWanted(): boolean | undefined {
    return this.#isWanted
  }

  /** Another client has begun to wait, or was refused. */
  wanted(now: number): void {
    this.#isWanted = true
    this.#wantedAt = now
  }

  /**
   * The store has answered a call and knows whether others wait; undefined: it cannot tell. A push
   * about a later waiter may have overtaken the answer.
   */
  answered(isWanted: boolean | undefined, sentAt: number): void {
    if (isWanted) this.#wantedAt = Math.max(this.#wantedAt, sentAt)
    this.#isWanted = this.#wantedAt >= sentAt ? true : isWanted
  }

  /** Whether one more request may be served, as far as other clients are concerned. */
  canGoOn(now: number): boolean {
    if (this.#isWanted === false) return true
    return this.#holds < HOLDS_PER_TURN && this.leftMs(now) > 0
  }

  /** How long the lease may stay here although others may wait. */
  leftMs(now: number): number {
    return this.#grantedAt + LONGEST_TURN_MS - now
  }

  /** How many further fences may be asked for: no more than may still be used. */
  get furtherFences(): number {
    if (this.isClosed) return 0
    const { tellsWanted } = this.#capabilities
    const alone = tellsWanted ? FENCES_WHILE_ALONE : HOLDS_PER_TURN
    const left = this.#isWanted === false ? alone : HOLDS_PER_TURN - this.#holds
    return Math.min(Math.max(1, left), mostFences(this.#capabilities))
  }
}

/** How many fences the store reserves at once. */
export function mostFences({ maxBlock }: Capabilities): number {
  return maxBlock ?? Infinity
}
