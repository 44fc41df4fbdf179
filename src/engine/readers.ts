import { Cohort } from './cohort.js'
import type { Lease } from './lease.js'
import type { Request } from './request.js'

/**
 * Readers of one client. While a lease serves one of them, the others come in beside it, each with
 * a fence that the store gave out after this reader had asked: a reader of another client may have
 * been granted since the lease was, and a later hold has a greater fence than every earlier one.
 */
export class Readers extends Cohort {
  /**
   * How many requests had arrived when fences were asked for last. Later ones wait for the next
   * answer.
   */
  #asked = 0
  /** How many had arrived when the lease was granted that they share now. */
  #invited = 0
  #granted: Lease | null = null

  override next(lease: Lease): Request | null {
    const request = super.next(lease)
    // These fences may be smaller than one that was given out before this reader came.
    if (request && request.arrival > this.#asked) lease.turn.dropFences()
    return request
  }

  /**
   * A waiting writer stops later readers; those that were here when the grant came enter together.
   */
  protected override isInOrder(request: Request): boolean {
    if (!super.isInOrder(request)) return false
    return this.lease?.turn.isWanted !== true || request.arrival <= this.#invited
  }

  override fencesWanted(lease: Lease): number {
    if (lease !== this.lease) return 0
    this.#asked = this.all.arrivals
    // What is left of the last answer is not for the readers that came since.
    lease.turn.dropFences()
    return this.queue.size
  }

  override add(request: Request): void {
    super.add(request)
    this.#detachLate()
  }

  override onAnswer(lease: Lease): void {
    if (lease === this.lease && lease.phase === 'held' && this.#granted !== lease) {
      this.#granted = lease
      this.#invited = this.all.arrivals
    }
    super.onAnswer(lease)
    this.#detachLate()
  }

  /** Those that asked before the answer, or while it is held, come in together. */
  protected override get expectant(): number {
    const phase = this.lease?.phase
    return phase === 'asking' || phase === 'held' ? this.queue.size : 0
  }

  /**
   * Readers that may not join ask the store for a lease of their own, behind the requests that wait
   * there.
   */
  #detachLate(): void {
    const { lease } = this
    if (lease?.isServing && this.queue.size > 0 && this.next(lease) === null) this.detach()
  }
}
