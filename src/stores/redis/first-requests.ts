import { deferred } from '../../base/deferred.js'
import type { ClaimReply, ClaimRequest } from '../../contract/store.js'

const BUSY: ClaimReply = { status: 'refused', reason: 'busy' }

export interface FirstRequestsContext {
  send(request: ClaimRequest): Promise<ClaimReply>
  /** Whether the client's channel is subscribed. */
  isSubscribed(): boolean
  /** Resolves when it is, or when subscribing has failed for now. */
  subscribed(): Promise<unknown>
}

/**
 * The requests that a client makes before its channel is subscribed. Until then no message could
 * tell it of a grant, so it waits in no line: it only tries, and claims again once it is
 * subscribed. So a free lock costs no further round trip.
 *
 * A later request must not overtake. So only the first request of a resource is tried; later ones
 * of that resource are held back until the channel is subscribed, and so is everything behind them,
 * since requests for different resources are served in order, too.
 */
export class FirstRequests {
  readonly #context: FirstRequestsContext
  readonly #pending = new Set<{ readonly id: string; isWithdrawn: boolean }>()
  /** By resource: resolves when its last request was sent for good. */
  readonly #sent = new Map<string, Promise<void>>()
  /** The same for the last request that was held back. */
  #heldBack: Promise<void> | null = null

  constructor(context: FirstRequestsContext) {
    this.#context = context
  }

  get areOver(): boolean {
    return this.#pending.size === 0 && this.#context.isSubscribed()
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    const { resource, id } = request
    const isHeldBack = this.#heldBack !== null || this.#sent.has(resource)
    const before = [this.#heldBack, this.#sent.get(resource)]
    const pending = { id, isWithdrawn: false }
    const sent = deferred<void>()
    this.#pending.add(pending)
    this.#sent.set(resource, sent.promise)
    if (isHeldBack) this.#heldBack = sent.promise
    try {
      const first = isHeldBack ? BUSY : await this.#try(request)
      if (!isHeldBack && (!isBusy(first) || request.mode === 'try')) return first
      await this.#context.subscribed()
      await Promise.all(before)
      if (pending.isWithdrawn) return BUSY
      const reply = this.#context.send(request)
      sent.resolve()
      return await reply
    } finally {
      sent.resolve()
      this.#pending.delete(pending)
      if (this.#sent.get(resource) === sent.promise) this.#sent.delete(resource)
      if (this.#heldBack === sent.promise) this.#heldBack = null
    }
  }

  /**
   * The claim is released. The release finds nothing in line, and the claim must not join it later.
   */
  withdraw(id: string): void {
    for (const pending of this.#pending) pending.isWithdrawn ||= pending.id === id
  }

  /** A claim that steals or adopts never waits, so it needs no message. */
  #try(request: ClaimRequest): Promise<ClaimReply> {
    const mayWait = request.mode === 'queue' && !this.#context.isSubscribed()
    return this.#context.send(mayWait ? { ...request, mode: 'try' } : request)
  }
}

function isBusy(reply: ClaimReply): boolean {
  return reply.status === 'refused' && reply.reason === 'busy'
}
