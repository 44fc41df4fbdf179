import type { ClaimRequest } from '../../contract/store.js'

/** Until when a claim lasts. The client keeps it: the servers know only the session. */
export class ClaimExpiry {
  /** When it lapses, unless it is renewed. */
  at: number
  /** Its caller was told to wait. */
  hasWaited = false
  readonly #request: ClaimRequest
  readonly #requestedAt: number
  #grantedAt = Number.NaN

  constructor(request: ClaimRequest, now: number) {
    this.#request = request
    this.#requestedAt = now
    this.at = now + request.presenceMs
  }

  /** The claim holds from now on. */
  grant(now: number): void {
    // A claim that need not wait counts from its request, however long the answer took.
    this.#grantedAt = this.hasWaited ? now : this.#requestedAt
    // A promotion renews nothing: the next pulse starts the lease.
    if (!this.hasWaited) this.at = this.#requestedAt + this.#request.leaseMs
    this.at = Math.min(this.at, this.#latest)
  }

  /** Never shortens it. A holder lives on for `leaseMs`, a waiter for `presenceMs`. */
  renew(now: number, leaseMs: number, presenceMs: number): void {
    const isGranted = !Number.isNaN(this.#grantedAt)
    this.at = Math.max(this.at, isGranted ? Math.min(now + leaseMs, this.#latest) : now + presenceMs)
  }

  get #latest(): number {
    return this.#grantedAt + (this.#request.maxHoldMs ?? Infinity)
  }
}
