import type { JudgedHold } from './hold.js'
import type { Violation } from './violation.js'

/**
 * Judges the holds of a mutex or read-write lock. Their fences say in which order they were given:
 * an exclusive hold comes after all with lower fences, and a reader after the exclusive ones. Each
 * must be able to end before the next one had begun.
 */
export function checkOrder(lock: string, holds: readonly JudgedHold[]): Violation[] {
  const violations: Violation[] = []
  const report = (rule: Violation['rule'], text: string, ...atFault: JudgedHold[]): void => {
    violations.push({ rule, object: lock, text, records: atFault.flatMap(({ records }) => records) })
  }
  /** Of all holds so far, the one that ends last. */
  let last: JudgedHold | null = null
  /** The same up to the newest exclusive hold. */
  let lastBeforeReaders: JudgedHold | null = null
  let newest: JudgedHold | null = null
  for (const hold of byFence(holds)) {
    const earlier: JudgedHold | null = hold.isExclusive ? last : lastBeforeReaders
    // It comes first among those with one fence.
    const twin: JudgedHold | null = newest && fenceOf(newest) === fenceOf(hold) ? newest : null
    if (twin) report('fence', `${name(twin)} and ${name(hold)} have the same fence`, twin, hold)
    else if (earlier && earlier.endsFrom > hold.to) {
      if (hold.endsFrom > earlier.to && excludes(earlier, hold))
        report('overlap', `${name(earlier)} and ${name(hold)} were held at one time`, earlier, hold)
      else report('fence', `${name(earlier)} came after ${name(hold)}, which is higher`, earlier, hold)
    }
    last = laterOf(last, hold)
    if (hold.isExclusive) [newest, lastBeforeReaders] = [hold, last]
  }
  return [...violations, ...overlapsWithoutFences(lock, holds)]
}

function byFence(holds: readonly JudgedHold[]): JudgedHold[] {
  return holds
    .filter(({ acquired }) => acquired.fence !== null)
    .toSorted((a, b) => fenceOf(a) - fenceOf(b) || Number(b.isExclusive) - Number(a.isExclusive))
}

/** Exclusive holds whose fences are not known can only be compared by time. */
function overlapsWithoutFences(lock: string, holds: readonly JudgedHold[]): Violation[] {
  const violations: Violation[] = []
  let last: JudgedHold | null = null
  for (const hold of holds.filter(({ isSure }) => isSure).toSorted((a, b) => a.to - b.to)) {
    const isUnfenced = last && (last.acquired.fence === null || hold.acquired.fence === null)
    if (last && isUnfenced && last.endsFrom > hold.to && excludes(last, hold)) {
      const text = `${name(last)} and ${name(hold)} were held at one time`
      violations.push({ rule: 'overlap', object: lock, text, records: [...last.records, ...hold.records] })
    }
    last = laterOf(last, hold)
  }
  return violations
}

function laterOf(one: JudgedHold | null, other: JudgedHold): JudgedHold {
  return one && one.endsFrom > other.endsFrom ? one : other
}

function excludes(one: JudgedHold, other: JudgedHold): boolean {
  return one.isExclusive || other.isExclusive
}

function fenceOf(hold: JudgedHold): number {
  return hold.acquired.fence ?? 0
}

function name(hold: JudgedHold): string {
  return `${hold.kind} ${hold.name} (fence ${hold.acquired.fence})`
}
