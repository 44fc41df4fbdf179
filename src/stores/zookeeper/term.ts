import type { ClaimRequest } from '../../contract/store.js'

/** How long a claim lasts. Kept by us: the servers know only the session. */
export class Term {
  /** When it lapses, if nobody speaks of it. */
  expiresAt: number
  /** Its owner was told to wait. */
  hasWaited = false
  readonly #request: ClaimRequest
  readonly #askedAt: number
  #grantedAt = Number.NaN

  constructor(request: ClaimRequest, now: number) {
    this.#request = request
    this.#askedAt = now
    this.expiresAt = now + request.presenceMs
  }

  /** It holds from now on. */
  grant(now: number): void {
    // Whoever need not wait counts from the asking, however long the answer took.
    this.#grantedAt = this.hasWaited ? now : this.#askedAt
    // A promotion refreshes nothing: only the next word of its owner starts the lease.
    if (!this.hasWaited) this.expiresAt = this.#askedAt + this.#request.leaseMs
    this.expiresAt = Math.min(this.expiresAt, this.#endsBy)
  }

  /** Its owner speaks of it. */
  keepHold(now: number, leaseMs: number): void {
    this.expiresAt = Math.max(this.expiresAt, Math.min(now + leaseMs, this.#endsBy))
  }

  keepPlace(now: number, presenceMs: number): void {
    this.expiresAt = Math.max(this.expiresAt, now + presenceMs)
  }

  get #endsBy(): number {
    return this.#grantedAt + (this.#request.maxHoldMs ?? Infinity)
  }
}
