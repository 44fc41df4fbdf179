import type { Claim, ClaimSpec } from './claim.js'
import type { Engine } from './engine.js'
import { aborted, type Limits, limitsLeft, waitLocally } from './limits.js'

type Entry = { claim: Claim } | { pending: Promise<unknown> }

/** Re-entry by an explicit owner within one client: the same owner's second acquisition stands on the claim of its first. */
export class Owners {
  readonly #engine: Engine
  readonly #entries = new Map<string, Entry>()

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** The owner's claim: the one it has, or a new one. null: not to be had at once. */
  async acquire(spec: ClaimSpec, limits: Limits): Promise<Claim | null> {
    const { env } = this.#engine
    const deadline = env.now() + limits.waitMs
    const key = keyOf(spec)
    for (;;) {
      const entry = this.#entries.get(key)
      if (entry && 'claim' in entry && entry.claim.isValid(env.now())) return entry.claim.enter(spec)
      const left = limitsLeft(limits, deadline, env.now())
      if (!entry || 'claim' in entry) return this.#acquireNew(key, spec, left)
      if (left.waitMs === 0) return null
      if (limits.signal?.aborted) throw aborted(spec.resource, limits.signal)
      // The same owner is asking already; see first what becomes of that.
      await waitLocally(env, entry.pending, left, spec.resource)
    }
  }

  async #acquireNew(key: string, spec: ClaimSpec, limits: Limits): Promise<Claim | null> {
    const asking = this.#engine.acquire(spec, limits)
    const entry: Entry = { pending: asking.catch(() => {}) }
    this.#entries.set(key, entry)
    let claim: Claim | null = null
    try {
      claim = await asking
      return claim
    } finally {
      if (claim) this.remember(claim)
      else this.#entries.delete(key)
    }
  }

  /** From now on the claim's owner enters again on it. */
  remember(claim: Claim): void {
    const key = keyOf(claim.spec)
    const entry: Entry = { claim }
    const forget = (): void => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key)
    }
    this.#entries.set(key, entry)
    claim.onEnd(forget)
  }
}

function keyOf(spec: ClaimSpec): string {
  return JSON.stringify([spec.resource, spec.owner])
}
