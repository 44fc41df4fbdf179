import type { ReadRecord, WriteRecord } from '../history.js'
import type { Rule, Violation } from './violation.js'

type CallRecord = ReadRecord | WriteRecord

/** A call that a guard accepted. */
interface Accepted {
  readonly record: CallRecord
  readonly fence: number
  readonly from: number
  readonly to: number
}

/**
 * Judges a fenced register. The accepted calls took effect in the order of their fences; those of
 * one hold, which have the same fence, in the order in which they were made.
 */
export function checkRegister(register: string, records: readonly CallRecord[]): Violation[] {
  const report = (rule: Rule, text: string, atFault: CallRecord[]): Violation => ({
    rule,
    object: register,
    text,
    records: atFault,
  })
  const accepted = acceptedIn(records)
  return [
    ...staleCalls(accepted, report),
    ...wrongReads(accepted, report),
    ...wrongRefusals(records, accepted, report),
  ]
}

type Report = (rule: Rule, text: string, atFault: CallRecord[]) => Violation

/** In the order of fences. A write without an answer was accepted if its value was read. */
function acceptedIn(records: readonly CallRecord[]): Accepted[] {
  const readAt = new Map<string, number>()
  for (const record of records)
    if (record.type === 'read' && record.isAccepted && record.value !== null && record.to !== null)
      readAt.set(record.value, Math.min(record.to, readAt.get(record.value) ?? record.to))
  const accepted: Accepted[] = []
  for (const record of records) {
    const { fence, from, to } = record
    const seenAt = record.type === 'write' ? readAt.get(record.value) : undefined
    if (!isUnknown(record)) {
      if (record.isAccepted) accepted.push({ record, fence, from, to: to ?? from })
    } else if (seenAt !== undefined && seenAt >= from)
      accepted.push({ record, fence, from: earliestOf(record, records), to: seenAt })
  }
  return accepted.toSorted((a, b) => a.fence - b.fence || a.from - b.from)
}

/** A write without an answer that was read: after the writes of its hold that the read came after. */
function earliestOf(write: CallRecord, records: readonly CallRecord[]): number {
  const reads = records.filter(
    (each) => each.type === 'read' && each.isAccepted && each.value === write.value,
  )
  const before = records.filter(
    (each) =>
      each.type === 'write' &&
      each.fence === write.fence &&
      each.isAccepted &&
      each !== write &&
      reads.some((read) => read.fence > each.fence || (each.to !== null && each.to <= read.from)),
  )
  return Math.max(write.from, ...before.map(({ from }) => from))
}

function isUnknown({ isAccepted, to }: CallRecord): boolean {
  return isAccepted === null || to === null
}

function staleCalls(accepted: readonly Accepted[], report: Report): Violation[] {
  const violations: Violation[] = []
  /** Of the calls with lower fences, the one that began last. */
  let latest: Accepted | null = null
  let latestOfFence: Accepted | null = null
  for (const [index, call] of accepted.entries()) {
    if (call.fence !== accepted[index - 1]?.fence) latest = laterOf(latest, latestOfFence)
    if (latest && latest.from > call.to)
      violations.push(
        report('stale call accepted', `${name(latest.record)} was accepted after ${name(call.record)}`, [
          call.record,
          latest.record,
        ]),
      )
    latestOfFence = laterOf(latestOfFence, call)
  }
  return violations
}

function laterOf(one: Accepted | null, other: Accepted | null): Accepted | null {
  if (!one || !other) return one ?? other
  return one.from > other.from ? one : other
}

function wrongReads(accepted: readonly Accepted[], report: Report): Violation[] {
  const violations: Violation[] = []
  /** The writes that may be the last one. */
  let last: Accepted[] = []
  for (const call of accepted) {
    const { record } = call
    if (record.type === 'write') last = [...last.filter((write) => mayFollow(write, call)), call]
    else if (last.length === 0 ? record.value !== null : !last.some((write) => gives(write, record))) {
      const [write] = last.slice(-1)
      const text = `${name(record)} gives ${quoted(record.value)}, and not ${quoted(write?.record.value ?? null)}`
      violations.push(report('lost update', text, write ? [write.record, record] : [record]))
    } else last = last.filter((write) => gives(write, record))
  }
  return violations
}

/** A write without an answer may be under way while its hold makes the next one. */
function mayFollow(write: Accepted, next: Accepted): boolean {
  return isUnknown(write.record) && write.fence === next.fence && write.to >= next.from
}

function gives(write: Accepted, { value }: CallRecord): boolean {
  return write.record.value === value
}

function quoted(value: string | null): string {
  return value === null ? 'nothing' : `'${value}'`
}

/** A refusal needs a call with a higher fence that can have taken effect before it was answered. */
function wrongRefusals(
  records: readonly CallRecord[],
  accepted: readonly Accepted[],
  report: Report,
): Violation[] {
  const higher = raisers(records, accepted)
  return records
    .filter((record) => !isUnknown(record) && record.isAccepted === false)
    .filter(({ fence, to }) => earliestAbove(higher, fence) > (to ?? 0))
    .map((record) =>
      report('fresh call refused', `${name(record)} was refused, and no higher fence was seen`, [record]),
    )
}

interface Raiser {
  readonly fence: number
  /** The earliest time at which the guard has seen this fence or a higher one. */
  earliest: number
}

/** In the order of fences. */
function raisers(records: readonly CallRecord[], accepted: readonly Accepted[]): Raiser[] {
  const seen = new Set(accepted.map(({ record }) => record))
  const unknown = records
    .filter((record) => isUnknown(record) && !seen.has(record) && !isUnseen(record, accepted))
    .map(({ fence, from }) => ({ fence, from, isKnown: false }))
  const known = accepted.map(({ fence, from }) => ({ fence, from, isKnown: true }))
  let latest = 0
  const sorted = [...known, ...unknown]
    .toSorted((a, b) => a.fence - b.fence || a.from - b.from)
    .map(({ fence, from, isKnown }) => {
      const earliest = Math.max(latest, from)
      if (isKnown) latest = earliest
      return { fence, earliest }
    })
  for (let index = sorted.length - 2; index >= 0; index--) {
    const [here, next] = [sorted[index], sorted[index + 1]]
    if (here && next) here.earliest = Math.min(here.earliest, next.earliest)
  }
  return sorted
}

/** A write that did not take effect: the next call that it would have come before is a read. */
function isUnseen(record: CallRecord, accepted: readonly Accepted[]): boolean {
  if (record.type === 'read') return false
  const at = firstAbove(accepted, record.fence)
  const isReplaced = accepted
    .slice(firstAbove(accepted, record.fence - 1), at)
    .some((same) => same.record.type === 'write' && same.to >= record.from)
  return accepted[at]?.record.type === 'read' && !isReplaced
}

function earliestAbove(higher: readonly Raiser[], fence: number): number {
  return higher[firstAbove(higher, fence)]?.earliest ?? Number.POSITIVE_INFINITY
}

/** The index of the first one with a higher fence. */
function firstAbove(sorted: readonly { readonly fence: number }[], fence: number): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle]?.fence ?? 0) > fence) high = middle
    else low = middle + 1
  }
  return low
}

function name({ type, hold, fence }: CallRecord): string {
  return `the ${type} of ${hold} (fence ${fence})`
}
