import { deferred } from '../base/deferred.js'
import type { Cohorts } from './cohorts.js'
import { Drain } from './drain.js'
import { closed, type Engine } from './engine.js'
import { heldFrames } from './flow.js'
import type { Lease } from './lease.js'

/** The least time that a store gets to close its connections. */
const LEAST_CLOSE_MS = 1500

/** Ends a client: first its waiters, then its running work, then its connection. */
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
   * Fails the waiters, waits up to `drainMs` for releases, revokes the rest, closes the connection.
   * Of several calls, the shortest drain counts.
   */
  close(drainMs: number): Promise<void> {
    // Set first: a listener may call close() again, with a shorter drain.
    this.#drain ??= new Drain(this.#engine)
    this.#drain.exclude(Array.from(heldFrames(this.#engine), ({ entry }) => entry))
    if (this.#closed) {
      this.#drain.endWithin(drainMs)
      return this.#closed
    }
    const closing = deferred<void>()
    // Set first: a caller that learns of its loss may acquire again at once.
    this.#closed = closing.promise
    this.#close(this.#drain, drainMs).then(closing.resolve, closing.reject)
    return closing.promise
  }

  async #close(drain: Drain, drainMs: number): Promise<void> {
    const { states, leases, lingering, storeName } = this.#engine
    const reason = closed(storeName)
    // Waiters first, or releases would go to them. Local waiters before the request they follow.
    this.#cohorts.failAll(reason)
    for (const lease of leases.values()) if (lease.isPending) lease.successors.onFailure(lease, reason)
    states.endWaits(reason)
    lingering.end()
    for (const lease of leases.values()) if (lease.spec.endsAtClose) this.#revoke(lease)
    drain.endWithin(drainMs)
    if (!drain.isOver) await drain.over
    await this.#end()
  }

  async #end(): Promise<void> {
    const { env, calls, states, leases, pulse, releases, connection, storeName } = this.#engine
    const deadline = env.now() + calls.storeTimeoutMs
    states.close(closed(storeName))
    for (const lease of leases.values()) this.#revoke(lease)
    leases.clear()
    pulse.stop()
    await releases.allSent()
    const leftMs = Math.max(LEAST_CLOSE_MS, deadline - env.now())
    await calls.within(leftMs, () => connection.close()).finally(() => calls.stop())
  }

  #revoke(lease: Lease): void {
    const isKept = lease.phase === 'held' && lease.isLeftToLapse
    const cause = closed(this.#engine.storeName)
    this.#engine.lose(lease, 'its client was closed', { cause, end: 'closed' })
    if (!isKept) void this.#engine.withdraw(lease)
  }
}
