import type { AcquireRecord, EndRecord, HistoryRecord, ReadRecord, WriteRecord } from '../history.js'
import { checkGrants } from './grants.js'
import { JudgedHold } from './hold.js'
import { checkRegister } from './registers.js'
import type { Violation } from './violation.js'
import { checkWaiters } from './waiters.js'

export interface CheckOptions {
  /** A free lock goes to a waiter within this time, and a lease that nobody renews ends. */
  readonly patienceMs?: number
}

export const PATIENCE_MS = 10_000

/** What must not be in the history of a run; empty: nothing was found. */
export function checkHistory(
  records: readonly HistoryRecord[],
  { patienceMs = PATIENCE_MS }: CheckOptions = {},
): Violation[] {
  const patience = patienceMs * 1000
  const faults = records.filter(({ type }) => type === 'fault')
  const healedAt = Math.max(0, ...faults.map(({ to }) => to ?? 0))
  const ends = new Map(records.filter(isEnd).map((end) => [end.hold, end]))
  const locks = groups(records.filter(isAcquire), (request) => request.lock)
  const ofLocks = [...locks].flatMap(([lock, requests]) => {
    const holds = requests.flatMap((acquired) =>
      acquired.to === null ? [] : [new JudgedHold(acquired, acquired.to, ends.get(acquired.hold))],
    )
    const unanswered = requests.filter(({ to }) => to === null)
    return [...checkGrants(lock, holds), ...checkWaiters(lock, { unanswered, holds, healedAt, patience })]
  })
  const registers = groups(records.filter(isCall), (call) => call.register)
  return [...ofLocks, ...[...registers].flatMap(([register, calls]) => checkRegister(register, calls))]
}

function groups<T>(items: readonly T[], nameOf: (item: T) => string): Map<string, T[]> {
  const grouped = new Map<string, T[]>()
  for (const item of items) {
    const group = grouped.get(nameOf(item))
    if (group) group.push(item)
    else grouped.set(nameOf(item), [item])
  }
  return grouped
}

function isAcquire(record: HistoryRecord): record is AcquireRecord {
  return record.type === 'acquire'
}

function isEnd(record: HistoryRecord): record is EndRecord {
  return record.type === 'end'
}

function isCall(record: HistoryRecord): record is ReadRecord | WriteRecord {
  return record.type === 'read' || record.type === 'write'
}
