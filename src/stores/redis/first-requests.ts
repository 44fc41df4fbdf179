import { deferred } from '../../base/deferred.js'
import type { ClaimRequest } from '../../contract/store.js'
import type { Answer } from './turns.js'

const BUSY: Answer = { text: 'busy', isSafe: true }

export interface FirstRequestsContext {
  ask(request: ClaimRequest): Promise<Answer>
  /** Whether the client's channel is heard. */
  isHearing(): boolean
  /** Resolves when it is heard, or cannot be for now. */
  heard(): Promise<unknown>
}

/**
 * The requests that a client makes before its channel is heard. Until then it stands in no line, because nobody could tell it of a grant:
 * it only tries, and asks again when it is heard. So a free lock costs no further round trip.
 *
 * A request that came later must not overtake. So only the first request of a resource is tried; what comes behind it is held back until
 * the channel is heard, and so is everything behind that, as requests for different resources are served in order, too.
 */
export class FirstRequests {
  readonly #context: FirstRequestsContext
  readonly #pending = new Set<{ readonly id: string; isGivenUp: boolean }>()
  /** By resource: settles when its last request was sent for good. */
  readonly #sent = new Map<string, Promise<void>>()
  /** The same for the last request that was held back. */
  #heldBack: Promise<void> | null = null

  constructor(context: FirstRequestsContext) {
    this.#context = context
  }

  get areOver(): boolean {
    return this.#pending.size === 0 && this.#context.isHearing()
  }

  async ask(request: ClaimRequest): Promise<Answer> {
    const { resource, id } = request
    const isHeldBack = this.#heldBack !== null || this.#sent.has(resource)
    const before = [this.#heldBack, this.#sent.get(resource)]
    const pending = { id, isGivenUp: false }
    const sent = deferred<void>()
    this.#pending.add(pending)
    this.#sent.set(resource, sent.promise)
    if (isHeldBack) this.#heldBack = sent.promise
    try {
      const first = isHeldBack ? BUSY : await this.#try(request)
      if (!isHeldBack && (first.text !== 'busy' || request.mode === 'try')) return first
      await this.#context.heard()
      await Promise.all(before)
      if (pending.isGivenUp) return BUSY
      const answer = this.#context.ask(request)
      sent.resolve()
      return await answer
    } finally {
      sent.resolve()
      this.#pending.delete(pending)
      if (this.#sent.get(resource) === sent.promise) this.#sent.delete(resource)
      if (this.#heldBack === sent.promise) this.#heldBack = null
    }
  }

  /** The claim is released. That finds nothing in line, and nothing must come there later. */
  giveUp(id: string): void {
    for (const pending of this.#pending) pending.isGivenUp ||= pending.id === id
  }

  #try(request: ClaimRequest): Promise<Answer> {
    return this.#context.ask(this.#context.isHearing() ? request : { ...request, mode: 'try' })
  }
}
