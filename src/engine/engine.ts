import { hostname } from 'node:os'
import { areRequestsWatched } from '../base/channels.js'
import type { Env } from '../base/env.js'
import { HoldfastError } from '../base/errors.js'
import type { HoldEnd } from '../base/events.js'
import { nothing } from '../base/nothing.js'
import { Calls } from '../calls/calls.js'
import { aborted, type Limits } from '../calls/limits.js'
import type { Beat, Capabilities, Connection, Held, Store } from '../contract/store.js'
import { States } from '../states/states.js'
import { Cancellations } from './cancellations.js'
import { Claims } from './claims.js'
import { Closing } from './closing.js'
import { Cohorts } from './cohorts.js'
import { Floors } from './floors.js'
import { Lease } from './lease.js'
import { Lingering } from './lingering.js'
import { News } from './news.js'
import { Observation } from './observation.js'
import { Pulse } from './pulse.js'
import { Releases } from './releases.js'
import { type Entry, Request } from './request.js'
import { Solo } from './solo.js'
import { type Asked, isAlike, type RequestSpec } from './spec.js'
import type { Successors } from './successors.js'
import { mostFences } from './turn.js'

export interface EngineOptions {
  readonly env: Env
  readonly space: string
  readonly storeTimeoutMs: number
}

/** How a lease was lost, beyond the message. */
interface Loss {
  readonly cause?: unknown
  readonly end?: HoldEnd
}

/**
 * One client of a store: its requests, its leases, its connection. docs/design.md walks through an
 * acquire.
 */
export class Engine {
  readonly env: Env
  readonly space: string
  readonly store: Store
  readonly capabilities: Capabilities
  readonly storeName: string
  readonly clientId: string
  readonly calls: Calls
  readonly connection: Connection
  readonly states: States
  /** By id: every lease that this client may have in a line of the store. */
  readonly leases = new Map<string, Lease>()
  readonly floors = new Floors()
  readonly cancellations = new Cancellations(this)
  readonly claims = new Claims(this)
  readonly news = new News(this)
  readonly lingering = new Lingering(this)
  readonly pulse: Pulse
  readonly releases: Releases
  readonly closing: Closing
  readonly #cohorts = new Cohorts(this)
  readonly #process = { host: hostname(), pid: process.pid }
  readonly #plainInfo = JSON.stringify(this.#process)
  /**
   * Resources of which a hold has ended here without a release, and whose waiters are about to ask.
   */
  readonly #lapsed = new Set<string>()
  #nextId = 1

  constructor(store: Store, options: EngineOptions) {
    this.env = options.env
    this.space = options.space
    this.store = store
    this.storeName = store.name
    this.capabilities = store.capabilities
    this.calls = new Calls(this.env, {
      storeName: store.name,
      space: options.space,
      storeTimeoutMs: options.storeTimeoutMs,
      trouble: () => this.connection.trouble?.() ?? null,
    })
    this.clientId = this.env.id()
    this.connection = store.connect({
      id: this.clientId,
      space: options.space,
      push: (news) => this.news.onPush(news),
    })
    this.pulse = new Pulse(this)
    this.releases = new Releases(this)
    this.closing = new Closing(this, this.#cohorts)
    this.states = new States({ env: this.env, calls: this.calls, connection: this.connection })
  }

  /** The hold of a new request; null if the lock is not free and the limits say not to wait. */
  acquire(spec: RequestSpec, limits: Limits): Entry | null | Promise<Entry | null> {
    this.throwIfClosed()
    if (limits.signal?.aborted) throw aborted(spec.resource, limits.signal)
    const request = new Request(this, spec, this.#infoOf(spec), limits)
    if (areRequestsWatched()) return this.#acquireWatched(request)
    this.#start(request)
    return request.outcome()
  }

  #acquireWatched(request: Request): Entry | null | Promise<Entry | null> {
    const observation = new Observation(this, request)
    request.observation = observation
    return observation.acquire(() => {
      this.#start(request)
      return request.outcome()
    })
  }

  #start(request: Request): void {
    const { spec, limits } = request
    const isPassedOn = spec.passOn === 'neighbours' && limits.waitMs > 0 && mostFences(this.capabilities) > 1
    if (isPassedOn) return this.#cohorts.of(request).add(request)
    const idle = limits.waitMs === 0 ? this.#cohorts.lingeringOn(spec.resource) : []
    if (idle.some((lease) => this.#serveIdle(lease, request))) return
    const solo = new Solo(this, request)
    // A lease that lingers here must not refuse a request of its own client.
    const leaving = idle.map((lease) => this.#giveBack(lease))
    if (leaving.length === 0) solo.start()
    else void Promise.allSettled(leaving).then(() => solo.start())
  }

  /** Serves a request that does not wait from a lease that lingers, if that takes no call. */
  #serveIdle(lease: Lease, request: Request): boolean {
    const now = this.env.now()
    const { turn } = lease
    const canServe =
      lease.canServeMore(now) && turn.canGoOn(now) && !turn.isOutOfFences && !lease.isAboutToEnd(now)
    if (!canServe || request.spec.passOn !== 'neighbours' || !isAlike(lease, request)) return false
    // A try does not overtake, neither readers nor requests with other options.
    if (this.#cohorts.on(lease.resource).some(({ waitingSince }) => waitingSince < Infinity)) return false
    request.line = lease.successors
    lease.serve(request, now)
    return true
  }

  /** Registered before anything is sent: the push of a grant may overtake the answer. */
  newLease(asked: Asked, successors: Successors): Lease {
    const lease = new Lease(asked.spec.newId?.() ?? this.newId(), asked, successors, this.capabilities)
    this.leases.set(lease.id, lease)
    return lease
  }

  newId(): string {
    return `${this.clientId}:${this.#nextId++}`
  }

  /**
   * A request without an owner is shown by its id. Most tell the same, which is put together once.
   */
  #infoOf({ owner, label }: RequestSpec): string {
    const { host, pid } = this.#process
    return owner === null && label === null ? this.#plainInfo : JSON.stringify({ owner, host, pid, label })
  }

  /**
   * A held lease goes on: to the next request, to the store for more fences, or back to the store.
   * `isConfirmed`: the store has just said that it is held.
   */
  goOn(lease: Lease, isConfirmed: boolean): void {
    const leaving = this.#goOn(lease, isConfirmed)
    // Nobody waits for this release: if it fails, the lease ends by itself.
    if (typeof leaving !== 'boolean') leaving.catch(nothing)
  }

  /** What a caller that leaves waits for. */
  #goOn(lease: Lease, isConfirmed: boolean): boolean | Promise<boolean> {
    while (lease.isIdle || (lease.phase === 'held' && lease.isShared)) {
      const request = lease.successors.next(lease)
      if (!request) break
      const now = this.env.now()
      if (now >= lease.validUntil) this.expire(lease)
      else if (lease.turn.isOutOfFences || (!isConfirmed && lease.isAboutToEnd(now))) {
        this.pulse.hurry(lease)
        return true
      } else {
        const place = request.lease
        lease.serve(request, now)
        // An heir leaves its own place in line.
        if (place && place !== lease) return this.releases.giveUpPlace(place, lease)
      }
    }
    return !lease.isIdle || this.lingering.keeps(lease) ? true : this.#giveBack(lease)
  }

  #giveBack(lease: Lease): boolean | Promise<boolean> {
    // Before anything is sent: what is on its way back serves no request.
    lease.end()
    this.forget(lease)
    const leaving = this.releases.release(lease, lease.validUntil)
    lease.successors.onOver(lease)
    return leaving
  }

  /** No request wants this lease any more. */
  giveUp(lease: Lease): void {
    if (lease.phase === 'over') return
    lease.end()
    this.forget(lease)
    void this.withdraw(lease)
  }

  /**
   * Takes back what the store may have under that id. Never fails: it lapses by itself in the end.
   */
  withdraw(claim: { readonly resource: string; readonly id: string }): Promise<void> {
    return this.releases.withdraw(claim)
  }

  /** Whether this client has made that id itself: only such claims are surely nobody else's. */
  isOwnId(id: string): boolean {
    return id.startsWith(`${this.clientId}:`)
  }

  forget(lease: Lease): void {
    this.leases.delete(lease.id)
    this.lingering.forget(lease)
    this.closing.onEnd()
  }

  /**
   * One hold is given back. true: it was held until now. Rejects when the store cannot be reached.
   */
  leave(entry: Entry): boolean | Promise<boolean> {
    const { request } = entry
    const { lease } = request
    if (!lease) return false
    const wasHeld = this.checkValidity(request)
    request.leave(entry)
    this.closing.onEnd()
    if (request.isEntered) return wasHeld && this.#shrinkAfterLeave(request, lease)
    request.end()
    if (!wasHeld) {
      // The store may still have a hold that could not be trusted any more.
      void this.withdraw(lease)
      return false
    }
    const { observation } = request
    const isPublished = observation?.leaves('released') === true
    lease.drop(request)
    const leaving = lease.isServing ? this.#shrinkAfterLeave(request, lease) : this.#goOn(lease, false)
    return observation && isPublished ? observation.left(leaving) : leaving
  }

  #shrinkAfterLeave(request: Request, lease: Lease): boolean | Promise<boolean> {
    if (lease.neededPermits >= lease.permits) return true
    return this.shrink(request, lease).then(
      () => true,
      (error) => {
        // The other holds may have left meanwhile, and the lease with them.
        if (lease.phase !== 'held') return request.phase !== 'lost'
        throw error
      },
    )
  }

  /** Gives back the permits that none of the holds needs any more. */
  async shrink(request: Request, lease: Lease): Promise<void> {
    const needed = lease.neededPermits
    if (needed >= lease.permits) return
    // Before it is sent: from now on nobody here may rely on more, whether or not the call gets
    // through.
    lease.permits = needed
    await this.renew(request, lease, {})
  }

  /**
   * Whether a request is held and valid at this moment. If its time has run out, its holders are
   * told at once.
   */
  checkValidity(request: Request): boolean {
    const isValid = request.isValid(this.env.now())
    if (!isValid && request.phase === 'held' && request.lease) this.expire(request.lease)
    return isValid
  }

  /**
   * A pulse for the lease of one request, with what it has to say beyond "I am here". Repeated
   * while the lease is valid.
   */
  async renew(request: Request, lease: Lease, extra: Partial<Beat>): Promise<Held> {
    lease.turn.isClosed = true
    const deadline = Math.min(lease.validUntil, this.env.now() + this.calls.storeTimeoutMs)
    return this.calls.repeated(deadline, async () => {
      const sentAt = this.env.now()
      const [reply] = await this.connection.pulse([{ ...lease.beat(), ...extra }])
      if (this.news.onRenewed(lease, reply, sentAt)) return reply as Held
      throw request.lostBecause ?? notHeld(lease.resource)
    })
  }

  /** The holders learn of the loss, waiting requests get another lease. */
  lose(lease: Lease, message: string, { cause, end = 'lost' }: Loss = {}): void {
    this.forget(lease)
    lease.lose(message, end, cause)
  }

  /** The validity has run out. */
  expire(lease: Lease): void {
    if (lease.phase !== 'held') return
    this.lose(lease, lease.whyExpired(this.env.now()), { end: 'expired' })
    // Where a session decides, and lives on after all, the store would keep the hold for nobody.
    if (!this.capabilities.perHoldLease) void this.withdraw(lease)
    this.#askForNext(lease.resource)
  }

  /**
   * A waiter of this client may have become the next one since it last asked, and would sleep until
   * its pulse.
   */
  #askForNext(resource: string): void {
    if (this.#lapsed.size === 0)
      queueMicrotask(() => {
        const lapsed = new Set(this.#lapsed)
        this.#lapsed.clear()
        if (!this.closing.isClosing) this.pulse.hurryNext(lapsed)
      })
    this.#lapsed.add(resource)
  }

  /** The error for the requests that wait for a lease. */
  unavailable({ resource, heartbeat }: Lease, cause: unknown): HoldfastError {
    const { silentSince } = heartbeat
    return this.calls.unavailable(
      cause,
      silentSince === null ? { resource } : { resource, since: silentSince },
    )
  }

  throwIfClosed(): void {
    if (this.closing.isClosing) throw closed(this.storeName)
  }
}

export function closed(store: string): HoldfastError {
  return new HoldfastError('CLOSED', 'This Holdfast client is closed; make a new one to go on', { store })
}

export function notHeld(resource: string): HoldfastError {
  return new HoldfastError('NOT_HELD', `This hold of '${resource}' has been released already`, { resource })
}
