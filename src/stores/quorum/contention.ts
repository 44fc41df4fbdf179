import type { Env } from '../../base/env.js'

/** For how long a resource counts as contended after a claim had to wait for it. */
const REMEMBERED_MS = 1000
/** With so many names at once, all are forgotten: what is remembered only saves calls. */
const MOST_NAMES = 1000

/**
 * The resources for which a claim of this client had to wait lately. The next claim asks only the
 * usher at first: the other members would be asked in vain, and would disturb the claim whose turn
 * it is.
 */
export class Contention {
  readonly #env: Env
  readonly #waitedAt = new Map<string, number>()

  constructor(env: Env) {
    this.#env = env
  }

  has(resource: string): boolean {
    const waitedAt = this.#waitedAt.get(resource)
    return waitedAt !== undefined && this.#env.now() - waitedAt < REMEMBERED_MS
  }

  /** A claim has to wait. */
  note(resource: string): void {
    if (this.#waitedAt.size >= MOST_NAMES) this.#waitedAt.clear()
    this.#waitedAt.set(resource, this.#env.now())
  }

  /** A claim was granted at once. */
  forget(resource: string): void {
    this.#waitedAt.delete(resource)
  }
}
