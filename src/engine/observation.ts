import { acquireChannel, holdChannel, trace } from '../base/channels.js'
import { type ErrorCode, HoldfastError } from '../base/errors.js'
import type { AcquireContext, AcquireOutcome, HoldContext, HoldEnd, Primitive } from '../base/events.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type { Engine } from './engine.js'
import type { Entry, Request } from './request.js'
import type { RequestSpec } from './spec.js'

const OUTCOMES: Partial<Record<ErrorCode, AcquireOutcome>> = {
  ACQUIRE_TIMEOUT: 'timeout',
  ABORTED: 'aborted',
  CANCELLED: 'cancelled',
  LINE_FULL: 'full',
  CLOSED: 'closed',
}

/**
 * What is published of one request and its hold. Made only while somebody subscribes, so that a
 * request that nobody watches costs one look.
 */
export class Observation {
  /** When the request was granted. */
  heldAt = 0
  readonly #engine: Engine
  readonly #request: Request
  readonly #acquire: AcquireContext
  readonly #askedAt: number
  #entry: Entry | null = null
  #hold: HoldContext | null = null
  /** The end of a hold that was lost before its caller was told of the grant. */
  #earlyEnd: { outcome: HoldEnd; error: unknown } | null = null

  constructor(engine: Engine, request: Request) {
    const { spec, limits } = request
    this.#engine = engine
    this.#request = request
    this.#askedAt = engine.env.now()
    // Not by a spread, here and below: it takes as long as the acquisition itself.
    this.#acquire = {
      resource: spec.resource,
      space: engine.space,
      store: engine.storeName,
      primitive: spec.primitive ?? primitiveOf(spec),
      permits: spec.permits,
      label: spec.label,
      owner: spec.owner,
      longestWaitMs: limits.waitMs,
      isQueued: false,
      outcome: undefined,
      waitMs: undefined,
      fence: undefined,
    }
  }

  /** The context of the hold, for the work that runs in it; null for a hold that entered again. */
  holdOf(entry: Entry): HoldContext | null {
    return entry === this.#entry ? this.#hold : null
  }

  /** Publishes the request, then the beginning of its hold. */
  acquire(ask: () => Entry | null | Promise<Entry | null>): Entry | null | Promise<Entry | null> {
    return trace(acquireChannel, this.#acquire, ask, {
      onValue: (entry) => this.#answered(entry),
      onError: (error) => this.#ended(failureOf(error), this.#engine.env.now()),
      afterValue: (entry) => this.#begin(entry),
    })
  }

  /** It has to wait in line. */
  queued(): void {
    this.#acquire.isQueued = true
  }

  #answered(entry: Entry | null): void {
    if (!entry) return this.#ended('refused', this.#engine.env.now())
    this.#acquire.fence = this.#request.fence
    this.#ended('granted', this.heldAt)
  }

  #ended(outcome: AcquireOutcome, at: number): void {
    this.#acquire.outcome = outcome
    this.#acquire.waitMs = at - this.#askedAt
  }

  #begin(entry: Entry | null): void {
    if (!entry) return
    this.#entry = entry
    const { resource, space, store, primitive, permits, label, owner } = this.#acquire
    this.#hold = {
      resource,
      space,
      store,
      primitive,
      permits,
      label,
      owner,
      acquire: this.#acquire,
      fence: this.#request.fence,
      leaseMs: this.#request.spec.leaseMs,
      outcome: undefined,
      holdMs: undefined,
    }
    holdChannel.start.publish(this.#hold)
    holdChannel.end.publish(this.#hold)
    if (this.#earlyEnd) this.over(this.#earlyEnd.outcome, this.#earlyEnd.error)
  }

  /** It is no longer held here. The store may still have to be told. */
  leaves(outcome: HoldEnd): boolean {
    if (!this.#hold || this.#hold.outcome !== undefined) return false
    this.#hold.outcome = outcome
    this.#hold.holdMs = this.#engine.env.now() - this.heldAt
    holdChannel.asyncStart.publish(this.#hold)
    return true
  }

  /** The store was told. `wasHeld`: what it answered. */
  left(wasHeld: boolean | Promise<boolean>): boolean | Promise<boolean> {
    if (typeof wasHeld === 'boolean') return this.#left(wasHeld)
    return wasHeld.then(
      (answer) => this.#left(answer),
      (error) => {
        this.#publishEnd(error)
        throw error
      },
    )
  }

  #left(wasHeld: boolean): boolean {
    if (!wasHeld && this.#hold) this.#hold.outcome = 'lost'
    this.#publishEnd()
    return wasHeld
  }

  /** It ended without a release. */
  over(outcome: HoldEnd, error?: unknown): void {
    if (!this.#hold) this.#earlyEnd ??= { outcome, error }
    else if (this.leaves(outcome)) this.#publishEnd(error)
  }

  #publishEnd(error?: unknown): void {
    if (!this.#hold) return
    if (error !== undefined) {
      this.#hold.error = error
      holdChannel.error.publish(this.#hold)
    }
    holdChannel.asyncEnd.publish(this.#hold)
  }
}

function primitiveOf({ permits, capacity }: RequestSpec): Primitive {
  if (capacity !== EXCLUSIVE) return 'semaphore'
  return permits === EXCLUSIVE ? 'mutex' : 'read'
}

function failureOf(error: unknown): AcquireOutcome {
  return (error instanceof HoldfastError && OUTCOMES[error.code]) || 'failed'
}
