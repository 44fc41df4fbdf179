import { deferred } from '../base/deferred.js'
import type { Cohorts } from './cohorts.js'
import { Drain } from './drain.js'
import { closed, type Engine } from './engine.js'
import { heldFrames } from './flow.js'
import type { Lease } from './lease.js'

/** A store that has not answered the releases has this time to close its connections. */
const LEAST_CLOSE_MS = 1500

/** Ends a client: its waiters first, then its running work, then its connection. */
export class Closing {
  readonly #engine: Engine
  readonly #cohorts: Cohorts
  #drain: Drain | null = null
  #closed: Promise<void> | null = null

  constructor(engine: Engine, cohorts: Cohorts) {
    this.#engine = engine
    this.#cohorts = cohorts
  }

  get isClosing(): boolean {
    return this.#closed !== null
  }

  /** A hold or a lease has ended. */
  onEnd(): void {
    this.#drain?.look()
  }

  /**
   * Fails the waiters, lets holds be given back for `drainMs`, takes the others away, ends the connection. After the drain it is
   * bounded by the store's timeout. Called again, the shorter drain counts.
   */
  close(drainMs: number): Promise<void> {
    // Before anybody is told of the close: a listener may call close() again, with a shorter drain.
    this.#drain ??= new Drain(this.#engine)
    this.#drain.exclude(Array.from(heldFrames(this.#engine), ({ entry }) => entry))
    if (this.#closed) {
      this.#drain.endWithin(drainMs)
      return this.#closed
    }
    const closing = deferred<void>()
    // Before anybody is told: a caller that hears of its loss may ask for another hold in the same moment.
    this.#closed = closing.promise
    this.#close(this.#drain, drainMs).then(closing.resolve, closing.reject)
    return closing.promise
  }

  async #close(drain: Drain, drainMs: number): Promise<void> {
    const { states, leases, lingering, storeName } = this.#engine
    const reason = closed(storeName)
    // Waiters first, or what is given back would go to them; and waiters behind another request before that one is gone.
    this.#cohorts.failAll(reason)
    for (const lease of leases.values()) if (lease.isPending) lease.successors.onFailure(lease, reason)
    states.endWaits(reason)
    lingering.end()
    for (const lease of leases.values()) if (lease.spec.endsAtClose) this.#takeAway(lease)
    drain.endWithin(drainMs)
    if (!drain.isOver) await drain.over
    await this.#end()
  }

  async #end(): Promise<void> {
    const { env, calls, states, leases, pulse, releases, connection, storeName } = this.#engine
    const deadline = env.now() + calls.storeTimeoutMs
    states.close(closed(storeName))
    for (const lease of leases.values()) this.#takeAway(lease)
    leases.clear()
    pulse.stop()
    await releases.allSent()
    const leftMs = Math.max(LEAST_CLOSE_MS, deadline - env.now())
    await calls.within(leftMs, () => connection.close()).finally(() => calls.stop())
  }

  #takeAway(lease: Lease): void {
    this.#engine.lose(lease, 'its client was closed', closed(this.#engine.storeName))
    void this.#engine.withdraw(lease)
  }
}
