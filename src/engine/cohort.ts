import type { Cancel } from '../base/env.js'
import type { HoldfastError } from '../base/errors.js'
import { nothing } from '../base/nothing.js'
import type { Claim } from './claim.js'
import type { Cohorts } from './cohorts.js'

/** One of those who want the same in the same process. */
export interface Member {
  readonly claim: Claim
  /** Its number among those who have come to a cohort of their client. */
  arrival: number
  /** Its turn to stand in the store's line for the others. */
  start(): void
  /** Somebody stands there already. */
  queue(): void
  /** It gets what the claim of a neighbour has: its place in line, or its grant. */
  takeOver(from: Claim): void
  /** It gets in beside its neighbours who read already, with a fence of its own. */
  join(claim: Claim, fence: number): void
  /** Whether what it has may go to one more neighbour at this moment. */
  readonly canGoOn: boolean
  /** The store is asked for more fences, and for the news. */
  askForFences(): void
  fail(error: HoldfastError): void
}

/** Whoever wants it now will want it again before the turn is over. */
const TURNS_AHEAD = 4

/**
 * Those of one process who ask for the same thing in the same words. One of them stands in the store's line for all; the others
 * wait here, in order of arrival, and get what it leaves behind.
 */
export class Cohort {
  protected readonly all: Cohorts
  /** What they ask for: all their claims are alike, but for the id. */
  readonly pattern: Claim
  /** null: nobody has waited here yet, as it is with most locks. */
  #line: Set<Member> | null = null
  /** Goes on along the line. A new one would pass by the traces of all who have left, again and again. */
  #inOrder: Iterator<Member> | null = null
  /** Where it is. */
  #first: Member | undefined
  protected front: Member | null = null
  #letProcessEnd: Cancel = nothing

  constructor(all: Cohorts, pattern: Claim) {
    this.all = all
    this.pattern = pattern
  }

  /** The arrival of the first one that waits, in the store's line or here. */
  get waitingSince(): number {
    return this.front?.claim.isPending ? this.front.arrival : this.waitingHereSince
  }

  /** The arrival of the first one that waits here, and has no place in the store's line yet. */
  get waitingHereSince(): number {
    return this.next?.arrival ?? Infinity
  }

  /** No request of this cohort stands in the store's line. */
  get isHeldBack(): boolean {
    return !this.front && this.size > 0
  }

  /** The claim that stands in the store's line for all. */
  get frontClaim(): Claim | undefined {
    return this.front?.claim
  }

  /** Whether the next one may go on with what the front has: not where a writer would overtake a reader, or a reader a writer. */
  get isNextInOrder(): boolean {
    const { next } = this
    return next !== undefined && !this.all.isOvertaking(next)
  }

  /** Whether this cohort may have a place in the store's line now. */
  get mayStart(): boolean {
    return this.isHeldBack && this.next !== undefined && this.all.mayStart(this.next)
  }

  /** How many wait here. */
  get size(): number {
    return this.#line?.size ?? 0
  }

  /** The first one stands in the store's line, the others wait here. */
  enter(member: Member): void {
    member.arrival = ++this.all.arrivals
    if (!this.front && this.size === 0 && this.all.mayStart(member)) {
      this.front = member
      return member.start()
    }
    this.#line ??= new Set()
    this.#inOrder ??= this.#line.values()
    this.#line.add(member)
    // Somebody waits for this: the process must not end for want of other work.
    if (this.#line.size === 1) this.#letProcessEnd = this.all.keepAlive.begin()
    member.queue()
  }

  /** How many fences the claim could use: it is about to be sent, or spoken of. A lone one needs no more than its own. */
  fencesFor(claim: Claim): number {
    if (claim.phase === 'asking') return this.size === 0 ? 1 : (1 + this.size) * TURNS_AHEAD
    return claim.needsFences ? Infinity : 0
  }

  /** The store has said that the claim is held. One at a time: the others wait until it is passed on. */
  letIn(_claim: Claim): void {}

  /** One that waits here has given up. */
  leave(member: Member): void {
    if (!this.#line?.delete(member)) return
    this.#settle()
    this.goOnHere()
  }

  /** The first one that waits here goes to the store's line for the others. */
  startNext(): void {
    this.front = this.takeNext() ?? null
    this.front?.start()
  }

  /** The next one takes over what the front leaves. false: there is nobody. */
  passOn(claim: Claim): boolean {
    if (this.front?.claim !== claim) return false
    const next = this.takeNext()
    if (!next) return false
    this.front = next
    next.takeOver(claim)
    this.goOnHere()
    return true
  }

  /** The front has nothing for others any more, neither place nor grant: the next one goes to the store by itself. */
  over(claim: Claim): void {
    if (this.front?.claim !== claim) return
    this.front = null
    this.goOnHere()
  }

  /** What the store has told the one at the front is true for all. */
  failAll(error: HoldfastError): void {
    const line = this.#line ?? []
    this.#line = null
    this.#inOrder = null
    this.#settle()
    for (const member of line) member.fail(error)
    this.all.failHeldBack(this, error)
    this.goOnHere()
  }

  /** A request has left the local line: later requests may have waited for that. */
  protected goOnHere(): void {
    this.all.startHeldBack(this)
    if (!this.front && this.size === 0) this.all.forget(this)
  }

  protected get next(): Member | undefined {
    // At the end of its line an iterator would stay there, whoever comes later.
    if (!this.#line?.size) return undefined
    if (!this.#first || !this.#line.has(this.#first)) this.#first = this.#inOrder?.next().value
    return this.#first
  }

  protected takeNext(): Member | undefined {
    const { next } = this
    if (next && this.#line?.delete(next)) this.#settle()
    return next
  }

  #settle(): void {
    if (this.size > 0) return
    this.#letProcessEnd()
    this.#letProcessEnd = nothing
  }
}
