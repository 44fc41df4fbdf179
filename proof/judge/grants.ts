import type { JudgedHold } from './hold.js'
import type { Violation } from './violation.js'

/**
 * Judges the holds of a lock of any kind. Their fences say in which order they were granted. That
 * order must be possible, and each must have been admitted beside those before it that had not
 * ended.
 */
export function checkGrants(lock: string, holds: readonly JudgedHold[]): Violation[] {
  const fenced = holds.toSorted((one, other) => fenceOf(one) - fenceOf(other))
  const grants = latestGrants(fenced)
  const violations: Violation[] = []
  const report = (rule: Violation['rule'], text: string, ...atFault: JudgedHold[]): void => {
    const records = [...new Set(atFault)].flatMap((hold) => hold.records)
    violations.push({ rule, object: lock, text, records })
  }
  const before = new Before()
  for (const [index, hold] of fenced.entries()) {
    const { at, by } = grants[index] as Grant
    const twin = fenced[index - 1]
    const barring = before.barring(hold, at)
    const permits = before.permitsBeside(hold, at)
    if (hold.acquired.fence === null) report('fence', `${name(hold)} was granted without a fence`, hold)
    else if (twin && fenceOf(twin) === fenceOf(hold))
      report('fence', `${name(twin)} and ${name(hold)} have the same fence`, twin, hold)
    else if (at < hold.acquired.from)
      report('fence', `${name(hold)} was asked for after ${name(by)} was granted`, hold, by)
    else if (barring && hold.endsFrom > barring.to && at === hold.to)
      report('overlap', `${name(barring)} and ${name(hold)} were held at one time`, barring, hold)
    else if (barring)
      report('fence', `${name(barring)} came after ${name(by)}, which is higher`, barring, hold, by)
    else if (permits && permits.count > capacityOf(hold))
      report(
        'permits',
        `With ${hold.name}, ${permits.count} permits of ${capacityOf(hold)} were held at one time`,
        ...permits.holds,
        by,
      )
    before.add(hold)
  }
  return violations
}

interface Grant {
  /** The latest moment at which the hold can have been granted: before all with higher fences. */
  readonly at: number
  /** The hold that says so: mostly itself. */
  readonly by: JudgedHold
}

/**
 * Nothing speaks for an earlier moment: the later a hold was granted, the more of those before it
 * have ended.
 */
function latestGrants(fenced: readonly JudgedHold[]): Grant[] {
  const grants: Grant[] = []
  let next: Grant | null = null
  for (const hold of fenced.toReversed()) {
    next = next && next.at < hold.to ? next : { at: hold.to, by: hold }
    grants.push(next)
  }
  return grants.reverse()
}

/** The holds with lower fences. */
class Before {
  /** Of all, and of the exclusive ones, the one that ends last. */
  #last: JudgedHold | null = null
  #lastExclusive: JudgedHold | null = null
  /** Of a semaphore: those that had not ended at the newest grant. */
  #holders: JudgedHold[] = []

  /** One that had not ended at this moment, and excludes the hold. */
  barring(hold: JudgedHold, at: number): JudgedHold | null {
    const last = hold.isExclusive ? this.#last : this.#lastExclusive
    return last && last.endsFrom > at ? last : null
  }

  /** null: it is no semaphore. */
  permitsBeside(hold: JudgedHold, at: number): { count: number; holds: JudgedHold[] } | null {
    if (hold.kind !== 'semaphore') return null
    this.#holders = this.#holders.filter(({ endsFrom }) => endsFrom > at)
    const holds = [...this.#holders, hold]
    return { count: holds.reduce((sum, { permits }) => sum + permits, 0), holds }
  }

  add(hold: JudgedHold): void {
    if (hold.kind === 'semaphore') this.#holders.push(hold)
    this.#last = laterOf(this.#last, hold)
    if (hold.isExclusive) this.#lastExclusive = laterOf(this.#lastExclusive, hold)
  }
}

function laterOf(one: JudgedHold | null, other: JudgedHold): JudgedHold {
  return one && one.endsFrom > other.endsFrom ? one : other
}

function fenceOf(hold: JudgedHold): number {
  return hold.acquired.fence ?? 0
}

function capacityOf({ acquired }: JudgedHold): number {
  return acquired.capacity ?? Number.POSITIVE_INFINITY
}

function name(hold: JudgedHold): string {
  return `${hold.kind} ${hold.name} (fence ${hold.acquired.fence})`
}
