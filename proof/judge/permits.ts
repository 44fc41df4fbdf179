import type { JudgedHold } from './hold.js'
import type { Violation } from './violation.js'

/** Judges the holds of a semaphore: at no time were more permits held for certain than there are. */
export function checkPermits(lock: string, holds: readonly JudgedHold[]): Violation[] {
  const sure = holds.filter(({ isSure }) => isSure).toSorted((a, b) => a.to - b.to)
  const short = holds.filter(({ isSure }) => !isSure)
  return [...aboveCapacity(lock, sure), ...withoutRoom(lock, short, sure)]
}

function aboveCapacity(lock: string, sure: readonly JudgedHold[]): Violation[] {
  const violations: Violation[] = []
  let held: JudgedHold[] = []
  for (const hold of sure) {
    held = [...held.filter(({ endsFrom }) => endsFrom > hold.to), hold]
    if (used(held) > capacityOf(hold)) violations.push(tooMany(lock, hold, held))
  }
  return violations
}

/** Holds that ended before their holders knew of them need room at one moment only. */
function withoutRoom(lock: string, short: readonly JudgedHold[], sure: readonly JudgedHold[]): Violation[] {
  const violations: Violation[] = []
  for (const hold of short) {
    const near = sure.filter(({ to, endsFrom }) => to < hold.to && endsFrom > hold.endsFrom)
    const moments = [hold.endsFrom, ...near.map(({ endsFrom }) => endsFrom).filter((at) => at <= hold.to)]
    const beside = (at: number): JudgedHold[] => near.filter(({ to, endsFrom }) => to < at && at < endsFrom)
    if (!moments.some((at) => used(beside(at)) + hold.permits <= capacityOf(hold)))
      violations.push(tooMany(lock, hold, [...beside(hold.endsFrom), hold]))
  }
  return violations
}

function tooMany(lock: string, hold: JudgedHold, held: readonly JudgedHold[]): Violation {
  const text = `With ${hold.name}, ${used(held)} permits of ${capacityOf(hold)} were held at one time`
  return { rule: 'permits', object: lock, text, records: held.flatMap(({ records }) => records) }
}

function used(held: readonly JudgedHold[]): number {
  return held.reduce((sum, { permits }) => sum + permits, 0)
}

function capacityOf({ acquired }: JudgedHold): number {
  return acquired.capacity ?? Number.POSITIVE_INFINITY
}
