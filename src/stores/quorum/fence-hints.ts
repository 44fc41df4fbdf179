import type { Env } from '../../base/env.js'

/** Covers the way to a near member, and clocks that are a little apart. */
const FIRST_LEAD_US = 20_000
/**
 * Fences are never much further ahead of the members' clocks. A member that has lost its data
 * starts from its clock, which has passed them by the time that it votes again.
 */
export const LONGEST_LEAD_MS = 1000
/** What is left of the lead after each claim for which it was enough. */
const DECAY = 0.99

/**
 * Fences that all members should give alike: a little ahead of their clocks. Where they do, a grant
 * takes one round trip.
 */
export class FenceHints {
  readonly #env: Env
  #leadUs = FIRST_LEAD_US

  constructor(env: Env) {
    this.#env = env
  }

  /**
   * The `floor` for a claim, whose client has seen fences up to `seen`. It arrives at every member
   * within `onWayMs`.
   */
  floor(seen: number, onWayMs: number): number {
    const onWayUs = Math.ceil(Math.min(onWayMs, LONGEST_LEAD_MS) * 1000)
    return Math.max(seen, this.#wallUs() + Math.max(this.#leadUs, onWayUs))
  }

  /** All members gave the same fence. */
  agreed(): void {
    this.#leadUs = Math.max(FIRST_LEAD_US, Math.floor(this.#leadUs * DECAY))
  }

  /** They did not: the clock of one of them may be ahead, as far as this fence. */
  differed(highest: number): void {
    const aheadUs = highest - this.#wallUs()
    this.#leadUs = Math.min(LONGEST_LEAD_MS * 1000, Math.max(this.#leadUs, aheadUs))
  }

  #wallUs(): number {
    return Math.floor(this.#env.wallMs() * 1000)
  }
}
