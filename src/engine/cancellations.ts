import { HoldfastError } from '../base/errors.js'
import type { Engine } from './engine.js'
import type { Lease } from './lease.js'

/** How long a mark is kept: a waiter that stood still for longer asks the store anew. */
const KEPT_MS = 3_600_000

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
    const { states } = this.#engine
    const { successors, resource, id } = lease
    let isCancelled: boolean
    try {
      isCancelled = (await states.read(keyOf(id))) !== null
    } catch (error) {
      const { closing } = this.#engine
      if (!closing.isClosing) successors.onFailure(lease, this.#engine.unavailable(lease, error))
      return
    }
    if (isCancelled) successors.onCancelled(lease, cancelled(resource))
    else successors.onOver(lease)
  }
}

function keyOf(id: string): string {
  return `cancelled:${id}`
}

function cancelled(resource: string): HoldfastError {
  const message = `The wait for '${resource}' was cancelled by an operator; ask again only if somebody decides so`
  return new HoldfastError('CANCELLED', message, { resource })
}
