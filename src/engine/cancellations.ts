import { HoldfastError } from '../base/errors.js'
import { nothing } from '../base/nothing.js'
import type { Update } from '../states/states.js'
import { closed, type Engine } from './engine.js'
import type { Lease } from './lease.js'

/** How long a mark is kept: a waiter that stood still for longer asks the store anew. */
const KEPT_MS = 3_600_000
const REMOVED: Update = { value: null, retentionMs: null }

/**
 * How a waiter learns that an operator has cancelled it. The operator marks the claim's id before
 * the claim is taken out of the line, so a client whose place is gone finds the mark, whether or
 * not the push has reached it. See docs/decisions/0017-cancel-and-states.md.
 */
export class Cancellations {
  readonly #engine: Engine

  constructor(engine: Engine) {
    this.#engine = engine
  }

  async mark(id: string): Promise<void> {
    const { states, env } = this.#engine
    await states.update(keyOf(id), (value) =>
      value === null ? { value: String(env.wallMs()), retentionMs: KEPT_MS } : null,
    )
  }

  /** The place of this lease is gone: its requests fail if it was cancelled, or ask anew. */
  async settle(lease: Lease): Promise<void> {
    const { states, closing, storeName } = this.#engine
    const { successors, resource, id } = lease
    let mark: string | null = null
    let failure: HoldfastError | null = null
    try {
      mark = await states.read(keyOf(id))
    } catch (error) {
      failure = this.#engine.unavailable(lease, error)
    }
    // Meanwhile `close()` did not see this lease: it is neither waiting nor held.
    if (closing.isClosing) successors.onFailure(lease, closed(storeName))
    else if (failure) successors.onFailure(lease, failure)
    else if (mark !== null) {
      successors.onTurnedAway(lease, cancelled(resource))
      // No other client asks for it. Where it cannot be removed, its retention ends it.
      states.update(keyOf(id), (value) => (value === null ? null : REMOVED)).catch(nothing)
    } else successors.onOver(lease)
  }
}

function keyOf(id: string): string {
  return `cancelled:${id}`
}

function cancelled(resource: string): HoldfastError {
  const message = `The wait for '${resource}' was cancelled by an operator; ask again only if somebody decides so`
  return new HoldfastError('CANCELLED', message, { resource })
}
