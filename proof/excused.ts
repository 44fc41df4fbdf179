import { closeSync, openSync, writeSync } from 'node:fs'
import type { AcquireRecord, EndRecord, HistoryRecord } from './history.js'
import { checkHistory } from './judge/check.js'
import type { Violation } from './judge/violation.js'
import { recordsOf } from './records.js'

/** A time in which the store may have forgotten holds, as its page says. */
export interface Loss {
  readonly from: number
  readonly to: number
}

export interface Excused {
  /** The file with the history that is to be judged. */
  readonly judged: string
  /** How many holds end earlier in it. */
  readonly count: number
  /** How many violations that excuses, at least. */
  readonly violations: number
  /** The longest time for which one of them and another hold were both believed. */
  readonly overlapMs: number
}

/** What was asked for before the end of a loss may reach its holder so much later. */
const ON_ITS_WAY_US = 1_000_000

/**
 * Nobody promises that a hold excludes others after a loss, if it was asked for before the end of
 * that, until its holder learns of it: a lease later at the latest. So where the judges would find
 * fault with such a hold, it ends where the loss began. Of two such holds, that is the earlier one.
 * Fences stay in the history. The history that is to be judged goes to another file.
 */
export function excused(file: string, losses: readonly Loss[], leaseMs: number): Excused {
  const none = { judged: file, count: 0, violations: 0, overlapMs: 0 }
  if (losses.length === 0) return none
  const records = [...recordsOf(file)]
  const clips = new Clips(records, losses, leaseMs * 1000)
  let violations = 0
  for (const ofLock of recordsByLock(records)) {
    let found = checkHistory(ofLock)
    violations += found.length
    // Another fault may show only when one hold is out of the way.
    while (clips.add(found)) found = checkHistory(clips.applied(ofLock))
    violations -= found.length
  }
  if (clips.size === 0) return none
  const judged = file.replace(/(\.jsonl)?$/, '-excused$1')
  write(judged, clips.applied(records))
  return { judged, count: clips.size, violations, overlapMs: Math.round(clips.longestOverlapUs / 1000) }
}

/** Without those of registers. */
function recordsByLock(records: readonly HistoryRecord[]): Iterable<HistoryRecord[]> {
  const lockOf = new Map<string, string>()
  for (const record of records) if (record.type === 'acquire') lockOf.set(record.hold, record.lock)
  const faults = records.filter(({ type }) => type === 'fault')
  const byLock = new Map<string, HistoryRecord[]>()
  for (const record of records) {
    const lock = record.type === 'acquire' || record.type === 'end' ? lockOf.get(record.hold) : undefined
    if (lock === undefined) continue
    const ofLock = byLock.get(lock) ?? [...faults]
    byLock.set(lock, ofLock)
    ofLock.push(record)
  }
  return byLock.values()
}

/** The holds that end where a loss began. */
class Clips {
  longestOverlapUs = 0
  readonly #losses: readonly Loss[]
  readonly #leaseUs: number
  readonly #ended = new Map<string, EndRecord>()
  readonly #clipped = new Map<string, EndRecord>()

  constructor(records: readonly HistoryRecord[], losses: readonly Loss[], leaseUs: number) {
    this.#losses = losses
    this.#leaseUs = leaseUs
    for (const record of records) {
      if (record.type === 'end') this.#ended.set(record.hold, record)
    }
  }

  get size(): number {
    return this.#clipped.size
  }

  applied(records: readonly HistoryRecord[]): HistoryRecord[] {
    return records.map((record) =>
      record.type === 'end' ? (this.#clipped.get(record.hold) ?? record) : record,
    )
  }

  /**
   * Whether any of these violations is the fault of a hold that may end earlier, and does not yet.
   * One such hold may be at fault in many of them.
   */
  add(violations: readonly Violation[]): boolean {
    const added = new Set<string>()
    for (const { records } of violations) {
      const holds = records.filter((record) => record.type === 'acquire').toSorted(byFence)
      if (holds.some(({ hold }) => added.has(hold))) continue
      const clipped = holds.find((acquired) => this.#clip(acquired))
      if (!clipped) continue
      added.add(clipped.hold)
      const overlaps = holds.filter((each) => each !== clipped).map((each) => this.#overlapUs(clipped, each))
      this.longestOverlapUs = Math.max(this.longestOverlapUs, ...overlaps)
    }
    return added.size > 0
  }

  #clip(acquired: AcquireRecord): boolean {
    const end = this.#ended.get(acquired.hold)
    if (!end || this.#clipped.has(acquired.hold)) return false
    const clipped = this.#endOf(acquired, end)
    if (clipped) this.#clipped.set(acquired.hold, clipped)
    return clipped !== undefined
  }

  /** How long both were believed. */
  #overlapUs(one: AcquireRecord, other: AcquireRecord): number {
    const [until, otherUntil] = [one, other].map(({ hold, from }) => this.#ended.get(hold)?.from ?? from)
    return Math.min(until ?? 0, otherUntil ?? 0) - Math.max(one.to ?? one.from, other.to ?? other.from)
  }

  #endOf({ from, to }: AcquireRecord, end: EndRecord): EndRecord | undefined {
    const heardAt = to ?? from
    const loss = this.#losses.find(
      (each) =>
        from <= each.to &&
        heardAt <= each.to + ON_ITS_WAY_US &&
        end.from >= each.from &&
        end.from <= each.to + this.#leaseUs,
    )
    // It may have ended before its holder heard of it, which is a moment after the grant.
    const earliest = Math.max(from, heardAt - ON_ITS_WAY_US)
    return loss && { ...end, from: Math.max(earliest, Math.min(loss.from, end.from)), to: null }
  }
}

function byFence(one: AcquireRecord, other: AcquireRecord): number {
  return (one.fence ?? Infinity) - (other.fence ?? Infinity)
}

function write(file: string, records: readonly HistoryRecord[]): void {
  const output = openSync(file, 'w')
  for (const record of records) writeSync(output, `${JSON.stringify(record)}\n`)
  closeSync(output)
}
