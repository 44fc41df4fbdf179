import { HoldfastError } from '../../src/base/errors.js'
import type { Hold } from '../../src/primitives/hold.js'
import { now, pass } from '../../src/testing/conformance/checks.js'
import { Lateness } from './lateness.js'

export interface Grant {
  readonly client: number
  readonly resource: string
  readonly fence: number
  /** When its holder began to ask for it, and when it had it. */
  readonly askedAt: number
  readonly at: number
}

/**
 * Two grants that should not both be: both believed in at one moment, or the later with a fence
 * that is not above the earlier one's.
 */
export interface Conflict {
  readonly earlier: Grant
  readonly later: Grant
}

export interface WatchedHold {
  /** Notes how long the hold is good for by now. */
  look(): void
  /** From here on nobody relies on it. */
  end(): void
  /** Resolves when its loss has been reported, and notes if that was late. */
  reported(): Promise<void>
}

/**
 * A timer can fire so late, and later if the machine stands still. What the holder asks, `isValid`,
 * is not late at all.
 */
const LATE_MS = 1000

/** Looks at every grant, and writes down what must not be. */
export class Judge {
  readonly lateness = new Lateness()
  readonly grants: Grant[] = []
  readonly overlaps: Conflict[] = []
  readonly lowered: Conflict[] = []
  readonly lateLosses: string[] = []
  readonly oddFailures: string[] = []
  readonly recoveries: { tookMs: number; boundMs: number }[] = []
  losses = 0
  /** Calls that failed with STORE_UNAVAILABLE, as they may while there is a fault. */
  unavailable = 0
  readonly #open = new Map<Hold, Grant>()
  readonly #highest = new Map<string, Grant>()
  readonly #last = new Map<string, number>()

  granted(client: number, hold: Hold, askedAt: number): WatchedHold {
    const grant = { client, resource: hold.resource, fence: hold.fence, askedAt, at: now() }
    this.#compare(grant, hold)
    this.grants.push(grant)
    this.#open.set(hold, grant)
    this.#last.set(`${client} ${hold.resource}`, grant.at)
    return this.#watch(hold, grant)
  }

  failed(error: unknown): void {
    if (error instanceof HoldfastError && error.code === 'STORE_UNAVAILABLE') this.unavailable++
    else this.oddFailures.push(String(error))
  }

  /** When the client was last granted the resource; 0 if never. */
  lastGrant(client: number, resource: string): number {
    return this.#last.get(`${client} ${resource}`) ?? 0
  }

  /**
   * Fences that fell for certain. Where a hold from before a loss of data can meet one from after
   * it, the older one may be read last, and `lowered` names the two; a request that began after the
   * higher fence was given out has no such excuse.
   */
  get fallen(): Conflict[] {
    return this.lowered.filter(({ earlier, later }) => later.askedAt > earlier.at)
  }

  /**
   * What must not be, whatever the fault: empty lists. `mayConflict` excuses conflicts that the
   * store's page names.
   */
  faults(mayConflict: (conflict: Conflict) => boolean = () => false) {
    return {
      overlaps: this.overlaps.filter((each) => !mayConflict(each)),
      lowered: this.lowered.filter((each) => !mayConflict(each)),
      lateLosses: this.lateLosses,
      oddFailures: this.oddFailures,
      lateRecoveries: this.recoveries.filter(({ tookMs, boundMs }) => tookMs > boundMs),
    }
  }

  /** One line for the record. */
  get summary(): string {
    const recoveries = this.recoveries.map(({ tookMs, boundMs }) => `${tookMs} of ${boundMs} ms`)
    return [
      `${this.grants.length} grants`,
      `${this.losses} losses`,
      `${this.unavailable} calls unavailable`,
      `${this.overlaps.length} overlaps`,
      `${this.lowered.length} lowered fences`,
      `recovered in ${recoveries.join(', ')}`,
    ].join('; ')
  }

  #compare(grant: Grant, hold: Hold): void {
    for (const [other, earlier] of this.#open)
      if (other !== hold && earlier.resource === grant.resource && other.isValid)
        this.overlaps.push({ earlier, later: grant })
    const highest = this.#highest.get(grant.resource)
    if (highest && grant.fence <= highest.fence) this.lowered.push({ earlier: highest, later: grant })
    else this.#highest.set(grant.resource, grant)
  }

  #watch(hold: Hold, grant: Grant): WatchedHold {
    const { lateness } = this
    // In this order: if the process stands still in between, it is seen to be good for longer, and
    // never for less.
    let lateMs = lateness.totalMs
    let validUntil = hold.remainingMs + now()
    const latest = (): number => validUntil + LATE_MS + lateness.totalMs - lateMs
    let lostAt: number | null = null
    const { signal } = hold
    const note = (): void => {
      lostAt = now()
      this.losses++
    }
    // A process that stood still may find the hold over before it looks at it for the first time.
    if (signal.aborted) note()
    else signal.addEventListener('abort', note)
    return {
      look() {
        if (!hold.isValid) return
        lateMs = lateness.totalMs
        validUntil = hold.remainingMs + now()
      },
      end: () => void this.#open.delete(hold),
      reported: async () => {
        while (lostAt === null && !signal.aborted && now() <= latest()) await pass(3)
        if (lostAt === null || lostAt > latest())
          this.lateLosses.push(`fence ${grant.fence} of ${grant.resource}, client ${grant.client}`)
      },
    }
  }
}
