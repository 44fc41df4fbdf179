import type { Env } from '../../base/env.js'
import { FLOOR_SKEW_MS } from '../../contract/constants.js'

/** Covers the way to a member on the first call; later the members' own answers tell. */
const FIRST_LEAD_US = 20_000
const MARGIN_US = 5000
/** Members believe a floor only up to the permitted skew. */
const LONGEST_LEAD_US = (FLOOR_SKEW_MS * 1000) / 2

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
    return Math.max(seen, this.#wallUs() + this.#leadUs)
  }

  /** The members gave different fences, the highest of which is this one. */
  differed(highest: number): void {
    this.#leadUs = Math.min(LONGEST_LEAD_US, Math.max(this.#leadUs, highest - this.#wallUs() + MARGIN_US))
  }

  #wallUs(): number {
    return Math.floor(this.#env.wallMs() * 1000)
  }
}
