import type { HoldfastError } from '../base/errors.js'
import type { Engine } from './engine.js'
import type { Lease } from './lease.js'
import type { Request } from './request.js'
import { isAlike } from './spec.js'
import type { Successors } from './successors.js'

/**
 * A request with a place of its own in the store's line. What it leaves goes to its heirs alone,
 * which come next anyway.
 */
export class Solo implements Successors {
  readonly #engine: Engine
  readonly #request: Request
  lease: Lease
  /** It has had a place in the store's line: it is not refused any more because others wait. */
  #isAdmitted = false

  constructor(engine: Engine, request: Request) {
    this.#engine = engine
    this.#request = request
    request.line = this
    this.lease = engine.newLease(request, this)
    request.lease = this.lease
  }

  /** Its caller may have given up before. */
  start(): void {
    if (this.#request.phase !== 'waiting') return
    const { waitMs, maxWaiters } = this.#request.limits
    if (!this.#isAdmitted) this.lease.maxWaiters = maxWaiters
    this.#engine.claims.start(this.lease, waitMs > 0 ? 'queue' : 'try')
  }

  next(lease: Lease): Request | null {
    if (this.#request.phase === 'waiting') return this.#request
    const now = this.#engine.env.now()
    if (!lease.heirs || !lease.canServeMore(now) || lease.isAboutToEnd(now)) return null
    for (let id = lease.heirs.ids.shift(); id !== undefined; id = lease.heirs.ids.shift()) {
      const heir = this.#engine.leases.get(id)
      // A request that has given up is on its way out of the line.
      if (heir) return this.#heirOf(lease, heir)
    }
    return null
  }

  /**
   * One that is still asking has a place all the same and comes next, by the store; so does one
   * that was granted itself.
   */
  #heirOf(lease: Lease, heir: Lease): Request | null {
    const { successors } = heir
    const canInherit = heir.phase === 'waiting' && heir.spec.passOn === 'heirs' && isAlike(heir, lease)
    return canInherit && successors instanceof Solo ? successors.#request : null
  }

  fencesWanted(lease: Lease): number {
    return lease.phase === 'held' ? 0 : 1
  }

  onAnswer(lease: Lease): void {
    this.#isAdmitted = true
    if (lease.phase === 'held') this.#engine.goOn(lease, true)
    else this.#request.onWaiting()
  }

  /**
   * Lost or given back after it was served: nobody waits here. Otherwise its place is gone, and the
   * store is asked anew.
   */
  onOver(lease: Lease): void {
    if (this.#request.phase !== 'waiting' || lease !== this.lease) return
    this.lease = this.#engine.newLease(this.#request, this)
    this.#request.lease = this.lease
    this.start()
  }

  onTurnedAway(lease: Lease, error: HoldfastError): void {
    if (lease === this.lease) this.#request.fail(error)
  }

  onFailure(lease: Lease, error: HoldfastError | null): void {
    if (error) return this.#request.fail(error)
    this.#engine.forget(lease)
    this.#request.refused()
  }

  isFirst(): boolean {
    return true
  }

  onServed(): void {}

  onLeft(): void {
    this.#engine.giveUp(this.lease)
  }
}
