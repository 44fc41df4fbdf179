import type { Cancel } from '../base/env.js'
import type { HoldfastError } from '../base/errors.js'
import { nothing } from '../base/nothing.js'
import type { Claim } from './claim.js'
import type { KeepAlive } from './keep-alive.js'

/** One of those who want the same in the same process. */
export interface Member {
  readonly claim: Claim
  /** Its turn to stand in the store's line for the others. */
  start(): void
  /** It gets what the claim of a neighbour has: its place in line, or its grant. */
  takeOver(from: Claim): void
  fail(error: HoldfastError): void
}

/**
 * Those of one process who ask for the same thing in the same words. One of them stands in the store's line for all; the others
 * wait here, in order of arrival, and get what it leaves behind.
 */
export class Cohort {
  readonly #all: Cohorts
  /** What they ask for: all their claims are alike, but for the id. */
  readonly pattern: Claim
  /** null: nobody has waited here yet, as it is with most locks. */
  #line: Set<Member> | null = null
  /** Goes on along the line. A new one would pass by the traces of all who have left, again and again. */
  #inOrder: Iterator<Member> | null = null
  #front: Member | null = null
  #letProcessEnd: Cancel = nothing

  constructor(all: Cohorts, pattern: Claim) {
    this.#all = all
    this.pattern = pattern
  }

  matches({ info, spec }: Claim): boolean {
    const { leaseMs, presenceMs, permits } = this.pattern.spec
    return (
      info === this.pattern.info &&
      spec.leaseMs === leaseMs &&
      spec.presenceMs === presenceMs &&
      spec.permits === permits
    )
  }

  /** How many wait here. */
  get size(): number {
    return this.#line?.size ?? 0
  }

  /** true: nobody stands in the store's line yet, so this one has to. */
  enter(member: Member): boolean {
    if (!this.#front) {
      this.#front = member
      return true
    }
    this.#line ??= new Set()
    this.#inOrder ??= this.#line.values()
    this.#line.add(member)
    // Somebody waits for this: the process must not end for want of other work.
    if (this.#line.size === 1) this.#letProcessEnd = this.#all.keepAlive.begin()
    return false
  }

  /** One that waits here has given up. */
  leave(member: Member): void {
    if (this.#line?.delete(member)) this.#settle()
  }

  /** The next one takes over what the front leaves. false: there is nobody. */
  passOn(claim: Claim): boolean {
    if (this.#front?.claim !== claim) return false
    const next = this.#next()
    if (!next) return false
    this.#front = next
    next.takeOver(claim)
    return true
  }

  /** The front has nothing any more, neither place nor grant: the next one goes to the store by itself. */
  over(claim: Claim): void {
    if (this.#front?.claim !== claim) return
    this.#front = this.#next() ?? null
    if (this.#front) this.#front.start()
    else this.#all.forget(this)
  }

  /** What the store has told the one at the front is true for all. */
  failAll(error: HoldfastError): void {
    const line = this.#line ?? []
    this.#line = null
    this.#inOrder = null
    this.#settle()
    for (const member of line) member.fail(error)
  }

  #next(): Member | undefined {
    // At the end of its line an iterator would stay there, whoever comes later.
    const next: Member | undefined = this.size > 0 ? this.#inOrder?.next().value : undefined
    if (next) this.leave(next)
    return next
  }

  #settle(): void {
    if (this.size > 0) return
    this.#letProcessEnd()
    this.#letProcessEnd = nothing
  }
}

/** The cohorts of one client. */
export class Cohorts {
  readonly keepAlive: KeepAlive
  /** Nearly always one for each resource; a second one where somebody asks for it in other words. */
  readonly #byResource = new Map<string, Cohort | Cohort[]>()

  constructor(keepAlive: KeepAlive) {
    this.keepAlive = keepAlive
  }

  /** The cohort that a claim belongs to. */
  of(claim: Claim): Cohort {
    const { resource } = claim
    const known = this.#byResource.get(resource)
    if (known === undefined) return this.#add(resource, claim, (cohort) => cohort)
    const all = Array.isArray(known) ? known : [known]
    const found = all.find((cohort) => cohort.matches(claim))
    return found ?? this.#add(resource, claim, (cohort) => [...all, cohort])
  }

  forget(cohort: Cohort): void {
    const { resource } = cohort.pattern
    const known = this.#byResource.get(resource)
    const others = Array.isArray(known) ? known.filter((other) => other !== cohort) : []
    if (others.length > 0) this.#byResource.set(resource, others)
    else this.#byResource.delete(resource)
  }

  /** Sends everybody away who waits behind a neighbour. */
  failAll(error: HoldfastError): void {
    for (const known of [...this.#byResource.values()])
      for (const cohort of Array.isArray(known) ? known : [known]) cohort.failAll(error)
  }

  #add(resource: string, pattern: Claim, among: (cohort: Cohort) => Cohort | Cohort[]): Cohort {
    const cohort = new Cohort(this, pattern)
    this.#byResource.set(resource, among(cohort))
    return cohort
  }
}
