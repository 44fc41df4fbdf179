import type { AcquireRecord } from '../history.js'
import type { JudgedHold } from './hold.js'
import type { Violation } from './violation.js'

interface Waits {
  /** Requests without an answer. */
  readonly unanswered: readonly AcquireRecord[]
  readonly holds: readonly JudgedHold[]
  /** When the last fault was healed. */
  readonly healedAt: number
  /** A free lock goes to a waiter within this time. */
  readonly patience: number
}

/** The longest time for which a hold may have been held. */
interface Span {
  from: number
  to: number
}

/**
 * Judges waiters that were never served although they lived. Back from the end of the wait, the
 * lock must have been busy at some time of each stretch that is as long as `patience`.
 */
export function checkWaiters(lock: string, { unanswered, holds, healedAt, patience }: Waits): Violation[] {
  const violations: Violation[] = []
  const waiters = unanswered.filter(({ waitedUntil }) => waitedUntil !== undefined)
  const spans = waiters.length > 0 ? spansOf(holds, patience) : []
  for (const waiter of waiters) {
    const start = Math.max(healedAt, waiter.from)
    for (let to = waiter.waitedUntil ?? 0; to - patience >= start; to -= patience) {
      if (spans.some((span) => span.from <= to && span.to >= to - patience)) continue
      const text = `${waiter.kind} ${waiter.hold} waited for ${patience / 1000} ms while nobody held the lock`
      violations.push({ rule: 'lost waiter', object: lock, text, records: [waiter] })
      break
    }
  }
  return violations
}

/**
 * A hold was granted after those with lower fences. An exclusive one began after they had ended, and
 * ended before the next began.
 */
function spansOf(holds: readonly JudgedHold[], patience: number): Span[] {
  const sorted = holds.toSorted((a, b) => (a.acquired.fence ?? 0) - (b.acquired.fence ?? 0))
  const spans = sorted.map((hold) => ({ from: hold.acquired.from, to: hold.endsBy(patience) }))
  let [granted, ended, endedBeforeReaders] = [0, 0, 0]
  for (const [index, hold] of sorted.entries()) {
    const span = spans[index] as Span
    span.from = Math.max(span.from, granted, hold.isExclusive ? ended : endedBeforeReaders)
    granted = span.from
    ended = Math.max(ended, hold.endsFrom)
    if (hold.isExclusive) endedBeforeReaders = ended
  }
  let [begun, begunAfterReaders] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (const [index, hold] of [...sorted.entries()].toReversed()) {
    const span = spans[index] as Span
    span.to = Math.min(span.to, hold.isExclusive ? begun : begunAfterReaders)
    begun = Math.min(begun, hold.to)
    if (hold.isExclusive) begunAfterReaders = begun
  }
  return spans.filter(({ from, to }) => from <= to)
}
