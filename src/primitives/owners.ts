import { aborted, type Limits, limitsLeft, lineFull, waitLocally } from '../calls/limits.js'
import type { Engine } from '../engine/engine.js'
import type { Entry, Request } from '../engine/request.js'
import type { RequestSpec } from '../engine/spec.js'
import { isAcquireTimeout } from './holder.js'

/** A request that was asked for, and how many wait by now: it and those that wait for it here. */
interface Pending {
  pending: Promise<unknown>
  waiters: number
}

type Known = { request: Request } | Pending

/** Re-entry by an explicit owner within one client: its next acquisition enters its request. */
export class Owners {
  readonly #engine: Engine
  readonly #known = new Map<string, Known>()

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** One more hold on the owner's request, or on a new one. null: not free, and `waitMs` is 0. */
  async acquire(spec: RequestSpec, limits: Limits): Promise<Entry | null> {
    const { env } = this.#engine
    const deadline = env.now() + limits.waitMs
    const key = keyOf(spec.resource, spec.owner)
    for (;;) {
      const known = this.#known.get(key)
      if (known && this.#isHeld(known)) return this.#enterAgain(known.request, spec.permits)
      const left = limitsLeft(limits, deadline, env.now())
      if (!known || 'request' in known) return this.#acquireNew(key, spec, left)
      if (left.waitMs === 0) return null
      if (limits.signal?.aborted) throw aborted(spec.resource, limits.signal)
      await this.#waitFor(known, spec.resource, left)
    }
  }

  /** The same owner has a pending request: wait for that first. */
  async #waitFor(known: Pending, resource: string, limits: Limits): Promise<void> {
    const { maxWaiters = Infinity } = limits
    if (known.waiters >= maxWaiters) throw lineFull(resource, maxWaiters)
    known.waiters++
    try {
      await waitLocally(this.#engine.env, known.pending, limits, resource)
    } catch (error) {
      throw isAcquireTimeout(error) ? await this.#engine.states.endOfWait(resource, error) : error
    } finally {
      known.waiters--
    }
  }

  #enterAgain(request: Request, permits: number): Entry {
    const { lease } = request
    const wasForgotten = lease?.isForgotten === true
    const entry = request.enter(permits)
    // Its earlier holds were forgotten, so no renewal is planned.
    if (wasForgotten && lease) this.#engine.pulse.hurry(lease)
    return entry
  }

  holds(resource: string, owner: string): boolean {
    const known = this.#known.get(keyOf(resource, owner))
    return known !== undefined && this.#isHeld(known)
  }

  /** Ends a hold whose time is over: renewed by a late answer, its owner would wait for itself. */
  #isHeld(known: Known): known is { request: Request } {
    return 'request' in known && this.#engine.checkValidity(known.request)
  }

  async #acquireNew(key: string, spec: RequestSpec, limits: Limits): Promise<Entry | null> {
    const mine: Pending = { pending: Promise.resolve(), waiters: 0 }
    const onWaiting = (): void => {
      mine.waiters++
      limits.onWaiting?.()
    }
    const asking = Promise.resolve(this.#engine.acquire(spec, { ...limits, onWaiting }))
    mine.pending = asking.catch(() => {})
    this.#known.set(key, mine)
    let entry: Entry | null = null
    try {
      entry = await asking
      return entry
    } finally {
      if (entry) this.remember(entry.request)
      else if (this.#known.get(key) === mine) this.#known.delete(key)
    }
  }

  /** Lets the request's owner enter it again. */
  remember(request: Request): void {
    const key = keyOf(request.resource, request.spec.owner)
    const known: Known = { request }
    const forget = (): void => {
      if (this.#known.get(key) === known) this.#known.delete(key)
    }
    this.#known.set(key, known)
    request.onEnd(forget)
  }
}

function keyOf(resource: string, owner: string | null): string {
  return JSON.stringify([resource, owner])
}
