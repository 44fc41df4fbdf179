import type { Env } from '../../base/env.js'
import { FLOOR_SKEW_MS } from '../../contract/constants.js'

/** Covers the way to a member, and clocks that are a little apart. */
const FIRST_LEAD_US = 20_000
/** A fence that is further above the hint comes from a clock that is ahead, not from a claim. */
const MARGIN_US = 10_000
/** Members believe a floor only up to the permitted skew. */
const LONGEST_LEAD_US = (FLOOR_SKEW_MS * 1000) / 2
/** What is left of the lead after each claim for which it was enough. */
const DECAY = 0.999

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

  /** The `floor` for a claim, whose client has seen fences up to `seen`. */
  floor(seen: number): number {
    return Math.max(seen, Math.floor(this.#env.wallMs() * 1000) + this.#leadUs)
  }

  /** The highest fence that members gave for that floor. */
  answered(floor: number, highest: number): void {
    const excess = highest - floor - 1
    if (excess > MARGIN_US) this.#leadUs = Math.min(LONGEST_LEAD_US, this.#leadUs + excess)
    else this.#leadUs = Math.max(FIRST_LEAD_US, Math.floor(this.#leadUs * DECAY))
  }
}
