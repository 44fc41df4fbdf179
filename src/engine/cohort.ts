import type { HoldfastError } from '../base/errors.js'
import { LinkedList } from '../base/linked-list.js'
import { lineFull } from '../calls/limits.js'
import type { Cohorts } from './cohorts.js'
import type { Engine } from './engine.js'
import type { Lease } from './lease.js'
import type { Request } from './request.js'
import { type Asked, isShared } from './spec.js'
import type { Successors } from './successors.js'

/** A waiting request probably wants the lock again before the turn is over. */
const FENCES_PER_WAITER = 4

/**
 * The requests of one client that ask for the same thing with the same options. They wait here in
 * order of arrival; one lease stands in the store's line for all of them, and goes from one to the
 * next.
 */
export class Cohort implements Successors {
  /** What they ask for. */
  readonly pattern: Asked
  readonly isShared: boolean
  /** They join only if fewer than that wait; Infinity: however many wait. */
  readonly maxWaiters: number
  protected readonly engine: Engine
  protected readonly all: Cohorts
  /** In order of arrival. */
  protected readonly queue = new LinkedList<Request>()
  lease: Lease | null = null
  /**
   * The last arrival for which a lease has stood in line: those up to it are not refused any more
   * because others wait.
   */
  #admitted = 0

  constructor(engine: Engine, all: Cohorts, first: Request) {
    this.engine = engine
    this.all = all
    this.pattern = first
    this.isShared = isShared(first.spec)
    this.maxWaiters = first.limits.maxWaiters ?? Infinity
  }

  /** The arrival of the first request that waits. */
  get waitingSince(): number {
    return this.queue.first?.arrival ?? Infinity
  }

  /** The arrival of the first request that has no place in the store's line. */
  get waitingHereSince(): number {
    const hasPlace = this.lease !== null && !this.lease.isServing
    return (hasPlace ? this.queue.first?.after : this.queue.first)?.arrival ?? Infinity
  }

  /** No lease stands in the store's line for its requests. */
  get isHeldBack(): boolean {
    return !this.lease && this.queue.size > 0
  }

  add(request: Request): void {
    request.line = this
    request.arrival = ++this.all.arrivals
    this.queue.push(request)
    const { lease } = this
    if (!lease && this.queue.first === request && this.all.mayStart(this, request)) this.start()
    else if (lease?.phase === 'held') this.engine.goOn(lease, false)
    this.#turnAway()
    // The first one is told by the store's answer.
    const isAsked = this.lease?.phase === 'asking' && this.queue.first === request
    if (request.phase === 'waiting' && !isAsked) request.onWaiting()
  }

  /** Starts if no earlier request of the other kind still waits for its place. */
  startInOrder(): void {
    const { first } = this.queue
    if (this.isHeldBack && first && this.all.mayStart(this, first)) this.start()
  }

  /** A lease goes to the store's line for the first request, and those behind it. */
  start(): void {
    const { first } = this.queue
    if (!first) return
    this.lease = this.engine.newLease(first, this)
    if (first.arrival > this.#admitted) this.lease.maxWaiters = first.limits.maxWaiters
    this.engine.claims.start(this.lease, 'queue')
  }

  next(lease: Lease): Request | null {
    const { first } = this.queue
    if (lease !== this.lease || !first) return null
    // The place in line was that of the first request. The others follow if no reader or writer is
    // overtaken.
    const mayFollow = !lease.turn.hasBegun || (this.isInOrder(first) && this.mayGoOn(lease))
    return mayFollow ? first : null
  }

  protected mayGoOn(lease: Lease): boolean {
    const now = this.engine.env.now()
    return lease.canServeMore(now) && lease.turn.canGoOn(now)
  }

  protected isInOrder(request: Request): boolean {
    return !this.all.isOvertaking(this, request)
  }

  fencesWanted(lease: Lease): number {
    const { size } = this.queue
    const lingers = lease.lingerMs > 0
    if (lease.phase !== 'held') return lingers ? Infinity : size <= 1 ? 1 : size * FENCES_PER_WAITER
    const isNeeded = lingers || (size > 0 && !lease.isServing)
    return isNeeded && lease.turn.isOutOfFences ? Infinity : 0
  }

  onAnswer(lease: Lease): void {
    if (lease.phase === 'held') this.engine.goOn(lease, true)
    else {
      this.#turnAway()
      this.queue.first?.onWaiting()
    }
  }

  onOver(lease: Lease): void {
    if (lease !== this.lease) return
    this.#admitted = this.all.arrivals
    this.detach()
  }

  /** Those that wait get another lease. */
  protected detach(): void {
    this.lease = null
    this.goOnHere()
  }

  /** How many of those that wait may be served with the next answer. */
  protected get expectant(): number {
    const { lease } = this
    if (!lease || lease.isServing) return 0
    return lease.phase === 'asking' || lease.phase === 'held' ? 1 : 0
  }

  /** Where more wait here than they allow, the last ones leave. */
  #turnAway(): void {
    const { maxWaiters, queue, pattern } = this
    while (queue.size - this.expectant > maxWaiters)
      queue.last?.fail(lineFull(pattern.spec.resource, maxWaiters))
  }

  /** The claim stood for all requests that wait here; those of other cohorts have their own. */
  onTurnedAway(lease: Lease, error: HoldfastError): void {
    if (lease !== this.lease) return
    this.lease = null
    for (const request of this.queue.takeAll()) request.failed(error)
    this.goOnHere()
  }

  /** What the store has said of one request is true for all that ask for the same. */
  onFailure(lease: Lease, error: HoldfastError | null): void {
    if (lease === this.lease && error) this.failAll(error)
  }

  failAll(error: HoldfastError): void {
    for (const request of this.queue.takeAll()) request.failed(error)
    this.#leaveStore()
    this.all.failHeldBack(this, error)
    this.goOnHere()
  }

  isFirst(request: Request): boolean {
    return this.queue.first === request
  }

  onServed(request: Request): void {
    this.queue.remove(request)
    this.goOnHere()
  }

  /**
   * The place in the store's line stays for the requests behind it, unless one of them would
   * overtake.
   */
  onLeft(request: Request): void {
    const wasFirst = this.queue.first === request
    if (!this.queue.remove(request)) return
    const { first } = this.queue
    if (!first || (wasFirst && !this.isInOrder(first))) this.#leaveStore()
    this.goOnHere()
  }

  /** Gives up a lease that serves nobody. */
  #leaveStore(): void {
    const { lease } = this
    if (!lease || lease.isServing) return
    if (lease.phase === 'held') return this.engine.goOn(lease, false)
    this.#admitted = this.all.arrivals
    this.lease = null
    this.engine.giveUp(lease)
  }

  /**
   * A request has left the queue: later requests, also those of other cohorts, may have waited for
   * that.
   */
  protected goOnHere(): void {
    this.all.startHeldBack(this)
    if (!this.lease && this.queue.size === 0) this.all.forget(this)
  }
}
