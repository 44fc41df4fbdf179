import type { Claim, ClaimSpec, Entry } from './claim.js'
import type { Engine } from './engine.js'
import { aborted, type Limits, limitsLeft, waitLocally } from './limits.js'

type Known = { claim: Claim } | { pending: Promise<unknown> }

/** Re-entry by an explicit owner within one client: the same owner's second acquisition stands on the claim of its first. */
export class Owners {
  readonly #engine: Engine
  readonly #known = new Map<string, Known>()

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** One more hold on the owner's claim: the one it has, or a new one. null: not to be had at once. */
  async acquire(spec: ClaimSpec, limits: Limits): Promise<Entry | null> {
    const { env } = this.#engine
    const deadline = env.now() + limits.waitMs
    const key = keyOf(spec.resource, spec.owner)
    for (;;) {
      const known = this.#known.get(key)
      if (known && this.#isHeld(known)) return this.#enterAgain(known.claim, spec.permits)
      const left = limitsLeft(limits, deadline, env.now())
      if (!known || 'claim' in known) return this.#acquireNew(key, spec, left)
      if (left.waitMs === 0) return null
      if (limits.signal?.aborted) throw aborted(spec.resource, limits.signal)
      // The same owner is asking already; see first what becomes of that.
      await waitLocally(env, known.pending, left, spec.resource).catch(async (error) => {
        throw error.code === 'ACQUIRE_TIMEOUT'
          ? await this.#engine.states.endOfWait(spec.resource, error)
          : error
      })
    }
  }

  #enterAgain(claim: Claim, permits: number): Entry {
    const { isForgotten } = claim
    const entry = claim.enter(permits)
    // Its earlier holds were forgotten, so the pulse has no plan to renew it.
    if (isForgotten) this.#engine.pulse.hurry(claim)
    return entry
  }

  /** Whether that owner holds that resource here. */
  holds(resource: string, owner: string): boolean {
    const known = this.#known.get(keyOf(resource, owner))
    return known !== undefined && this.#isHeld(known)
  }

  /** One whose time is over is lost from now on: its owner would otherwise wait for himself, should a late answer renew it. */
  #isHeld(known: Known): known is { claim: Claim } {
    return 'claim' in known && this.#engine.checkValidity(known.claim)
  }

  async #acquireNew(key: string, spec: ClaimSpec, limits: Limits): Promise<Entry | null> {
    const asking = this.#engine.acquire(spec, limits)
    const mine: Known = { pending: asking.catch(() => {}) }
    this.#known.set(key, mine)
    let entry: Entry | null = null
    try {
      entry = await asking
      return entry
    } finally {
      if (entry) this.remember(entry.claim)
      else if (this.#known.get(key) === mine) this.#known.delete(key)
    }
  }

  /** From now on the claim's owner enters again on it. */
  remember(claim: Claim): void {
    const key = keyOf(claim.resource, claim.spec.owner)
    const known: Known = { claim }
    const forget = (): void => {
      if (this.#known.get(key) === known) this.#known.delete(key)
    }
    this.#known.set(key, known)
    claim.onEnd(forget)
  }
}

function keyOf(resource: string, owner: string | null): string {
  return JSON.stringify([resource, owner])
}
