import type { HoldfastError } from '../base/errors.js'
import type { Claim } from './claim.js'
import { Cohort, type Member } from './cohort.js'
import type { KeepAlive } from './keep-alive.js'
import { Readers } from './readers.js'

/** The cohorts of one client. */
export class Cohorts {
  readonly keepAlive: KeepAlive
  /** Nearly always one for each resource; a second one where somebody asks for it in other words. */
  readonly #byResource = new Map<string, Cohort | Cohort[]>()
  /** How many have come to any of them. */
  arrivals = 0

  constructor(keepAlive: KeepAlive) {
    this.keepAlive = keepAlive
  }

  /** The cohort that a claim belongs to. */
  of(claim: Claim): Cohort {
    const { resource } = claim
    const known = this.#byResource.get(resource)
    if (known === undefined) return this.#add(resource, claim, (cohort) => cohort)
    const all = Array.isArray(known) ? known : [known]
    const found = all.find(({ pattern }) => pattern.isLike(claim))
    return found ?? this.#add(resource, claim, (cohort) => [...all, cohort])
  }

  /** Whether a reader has waited since before this writer came, or a writer since before this reader did. Others take turns. */
  isOvertaking({ claim, arrival }: Member): boolean {
    const known = this.#byResource.get(claim.resource)
    if (!Array.isArray(known)) return false
    return known.some(
      ({ pattern, waitingSince }) => pattern.isShared !== claim.isShared && waitingSince < arrival,
    )
  }

  /**
   * Whether nobody of the other kind, reader or writer, came before it and still waits in this process: that one would get its place in the
   * store's line behind this one.
   */
  mayStart({ claim, arrival }: Member): boolean {
    const known = this.#byResource.get(claim.resource)
    if (!Array.isArray(known)) return true
    return known.every(
      ({ pattern, waitingHereSince }) => pattern.isShared === claim.isShared || waitingHereSince > arrival,
    )
  }

  /** Held-back requests go to the store in order of arrival, while no earlier request waits here. */
  startHeldBack(cohort: Cohort): void {
    const known = this.#byResource.get(cohort.pattern.resource)
    if (!Array.isArray(known)) return cohort.isHeldBack ? cohort.startNext() : undefined
    const heldBack = known.filter(({ isHeldBack }) => isHeldBack)
    heldBack.sort((one, other) => one.waitingHereSince - other.waitingHereSince)
    for (const each of heldBack) if (each.mayStart) each.startNext()
  }

  /** What the store has told this cohort is true for those as well who waited for it here, and have not asked the store. */
  failHeldBack(cohort: Cohort, error: HoldfastError): void {
    const known = this.#byResource.get(cohort.pattern.resource)
    if (!Array.isArray(known)) return
    for (const each of known) if (each !== cohort && each.isHeldBack) each.failAll(error)
  }

  forget(cohort: Cohort): void {
    const { resource } = cohort.pattern
    const known = this.#byResource.get(resource)
    const all = Array.isArray(known) ? known : known ? [known] : []
    const others = all.filter((other) => other !== cohort)
    if (others.length > 0) this.#byResource.set(resource, others)
    else this.#byResource.delete(resource)
  }

  /** Sends everybody away who waits behind a neighbour. */
  failAll(error: HoldfastError): void {
    const all = [...this.#byResource.values()]
    // Nobody is to be started in place of one who is sent away.
    this.#byResource.clear()
    for (const known of all)
      for (const cohort of Array.isArray(known) ? known : [known]) cohort.failAll(error)
  }

  #add(resource: string, pattern: Claim, among: (cohort: Cohort) => Cohort | Cohort[]): Cohort {
    const cohort = pattern.isShared ? new Readers(this, pattern) : new Cohort(this, pattern)
    this.#byResource.set(resource, among(cohort))
    return cohort
  }
}
