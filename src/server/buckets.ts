import type { Env } from '../base/env.js'

/** More keys than that are not told apart: the oldest are forgotten. */
const MOST_KEYS = 10_000

interface Bucket {
  left: number
  at: number
}

/** Counts events per key: `burst` at once, then `perSecond`. */
export class Buckets {
  readonly #buckets = new Map<string, Bucket>()

  constructor(
    private readonly env: Env,
    private readonly limits: { readonly burst: number; readonly perSecond: number },
  ) {}

  /** Counts one. false: it is one too many. */
  take(key: string): boolean {
    const left = this.#leftOf(key)
    const isAllowed = left >= 1
    this.#buckets.delete(key)
    this.#buckets.set(key, { left: isAllowed ? left - 1 : left, at: this.env.now() })
    const oldest = this.#buckets.size > MOST_KEYS ? this.#buckets.keys().next().value : undefined
    if (oldest !== undefined) this.#buckets.delete(oldest)
    return isAllowed
  }

  #leftOf(key: string): number {
    const { burst, perSecond } = this.limits
    const bucket = this.#buckets.get(key)
    if (!bucket) return burst
    return Math.min(burst, bucket.left + ((this.env.now() - bucket.at) / 1000) * perSecond)
  }
}
