import type { HoldfastError } from '../base/errors.js'
import { Cohort } from './cohort.js'
import type { Engine } from './engine.js'
import type { Lease } from './lease.js'
import { Readers } from './readers.js'
import type { Request } from './request.js'
import { isAlike, isShared } from './spec.js'

/** The cohorts of one client. Readers and writers of one resource do not overtake each other. */
export class Cohorts {
  readonly #engine: Engine
  /**
   * Nearly always one for each resource; several where requests differ in their options, or read
   * and write.
   */
  readonly #byResource = new Map<string, Cohort | Cohort[]>()
  /** How many requests have come to any of them. */
  arrivals = 0

  constructor(engine: Engine) {
    this.#engine = engine
  }

  of(request: Request): Cohort {
    const known = this.#byResource.get(request.resource)
    if (known instanceof Cohort) return isFor(request, known) ? known : this.#add(request, [known])
    return known?.find((cohort) => isFor(request, cohort)) ?? this.#add(request, known ?? [])
  }

  /** The cohorts of a resource. */
  on(resource: string): readonly Cohort[] {
    const known = this.#byResource.get(resource)
    return known === undefined ? [] : known instanceof Cohort ? [known] : known
  }

  /** The leases of a resource that linger. */
  lingeringOn(resource: string): Lease[] {
    return this.on(resource).flatMap(({ lease }) => (lease?.isLingering ? [lease] : []))
  }

  /**
   * Whether a reader has waited since before this writer came, or a writer since before this reader
   * did.
   */
  isOvertaking(cohort: Cohort, { resource, arrival }: Request): boolean {
    const known = this.#byResource.get(resource)
    if (!Array.isArray(known)) return false
    return known.some((other) => other.isShared !== cohort.isShared && other.waitingSince < arrival)
  }

  /**
   * Whether no request of the other kind, reader or writer, came before it and still waits for a
   * place in the store's line: that one would get its place behind this one.
   */
  mayStart(cohort: Cohort, { resource, arrival }: Request): boolean {
    const known = this.#byResource.get(resource)
    if (!Array.isArray(known)) return true
    return known.every((other) => other.isShared === cohort.isShared || other.waitingHereSince > arrival)
  }

  /**
   * Held-back requests go to the store in order of arrival, while no earlier request waits here.
   */
  startHeldBack(cohort: Cohort): void {
    const known = this.#byResource.get(cohort.pattern.spec.resource)
    if (!Array.isArray(known)) return cohort.isHeldBack ? cohort.start() : undefined
    const heldBack = known.filter(({ isHeldBack }) => isHeldBack)
    heldBack.sort((one, other) => one.waitingHereSince - other.waitingHereSince)
    for (const each of heldBack) each.startInOrder()
    // Others may wait beside a lease of their own that is idle.
    for (const { lease } of known) if (lease?.isLingering) this.#engine.goOn(lease, false)
  }

  /**
   * What the store has told this cohort is true for those as well that waited for it here, and have
   * not asked the store. Only a refusal of options is not: the others have their own.
   */
  failHeldBack(cohort: Cohort, error: HoldfastError): void {
    if (error.code === 'INVALID_ARGUMENT' || error.code === 'UNSUPPORTED') return
    for (const each of this.on(cohort.pattern.spec.resource))
      if (each !== cohort && each.isHeldBack) each.failAll(error)
  }

  forget(cohort: Cohort): void {
    const { resource } = cohort.pattern.spec
    const known = this.#byResource.get(resource)
    if (known === cohort) this.#byResource.delete(resource)
    if (!Array.isArray(known)) return
    const [first, ...others] = known.filter((other) => other !== cohort)
    if (first) this.#byResource.set(resource, others.length > 0 ? [first, ...others] : first)
  }

  /** Fails every request that waits. */
  failAll(error: HoldfastError): void {
    const all = [...this.#byResource.values()].flat()
    // No request is to be started in place of one that fails.
    this.#byResource.clear()
    for (const cohort of all) cohort.failAll(error)
  }

  #add(first: Request, others: readonly Cohort[]): Cohort {
    const cohort = isShared(first.spec)
      ? new Readers(this.#engine, this, first)
      : new Cohort(this.#engine, this, first)
    this.#byResource.set(first.resource, others.length > 0 ? [...others, cohort] : cohort)
    return cohort
  }
}

/** Whether the request can wait with these: one refusal is right for all of them. */
function isFor(request: Request, { pattern, maxWaiters }: Cohort): boolean {
  return (request.limits.maxWaiters ?? Infinity) === maxWaiters && isAlike(pattern, request)
}
