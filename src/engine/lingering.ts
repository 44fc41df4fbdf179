import type { Cancel } from '../base/env.js'
import { nothing } from '../base/nothing.js'
import type { Engine } from './engine.js'
import type { Lease } from './lease.js'

/**
 * The leases that are kept for a while after their last hold has gone, so that the next request of
 * this client costs no round trip. They go back when their time is over, or when others want them.
 * One timer for all.
 */
export class Lingering {
  readonly #engine: Engine
  readonly #leases = new Set<Lease>()
  #timerAt = Infinity
  #stop: Cancel = nothing

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** Whether the lease, which has nothing to do, may stay. */
  keeps(lease: Lease): boolean {
    const { env, capabilities, closing } = this.#engine
    const now = env.now()
    const { turn } = lease
    if (closing.isClosing || !turn.hasBlock) return false
    if (lease.lingerMs === 0 || turn.isWanted || !lease.canServeMore(now) || !turn.canGoOn(now)) return false
    // Where the store does not tell whether others wait, it stays for the rest of its turn only.
    const isTold = turn.isWanted === false && capabilities.tellsWanted === true
    const forMs = isTold ? lease.lingerMs : Math.min(lease.lingerMs, turn.leftMs(now))
    lease.lingersUntil ??= now + forMs
    if (lease.lingersUntil <= now) return false
    this.#leases.add(lease)
    this.#lookBy(lease.lingersUntil)
    return true
  }

  /** The lease is over. The timer must not keep the process alive for nothing. */
  forget(lease: Lease): void {
    if (!this.#leases.delete(lease) || this.#leases.size > 0) return
    this.#stop()
    this.#timerAt = Infinity
  }

  /** Gives all of them back. */
  end(): void {
    this.#stop()
    for (const lease of this.#leases) lease.lingerMs = 0
    this.#look()
  }

  /**
   * A timer that fires early finds nothing to do: so a lock that is taken again and again sets few
   * timers.
   */
  #lookBy(at: number): void {
    if (at >= this.#timerAt) return
    this.#stop()
    this.#timerAt = at
    const { env } = this.#engine
    // It keeps the process alive, or a process without other work would end and leave the lock
    // taken.
    this.#stop = env.timer(Math.max(0, at - env.now()), () => this.#look(), { keepAlive: true })
  }

  #look(): void {
    this.#timerAt = Infinity
    const leases = [...this.#leases]
    this.#leases.clear()
    // Idle ones that may stay come back by `keeps`.
    for (const lease of leases) if (lease.isIdle) this.#engine.goOn(lease, false)
  }
}
