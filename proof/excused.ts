import { closeSync, openSync, writeSync } from 'node:fs'
import type { AcquireRecord, EndRecord, HistoryRecord } from './history.js'
import { checkHistory } from './judge/check.js'
import { recordsOf } from './records.js'

/** A time in which the store may have forgotten holds, as its page says. */
export interface Loss {
  readonly from: number
  readonly to: number
}

/** What was granted before a loss may reach its holder so much later. */
export const ON_ITS_WAY_US = 1_000_000

/**
 * Nobody promises that a hold excludes others after a loss that came after its grant, until its
 * holder learns of that: a lease later at the latest. So where the judges would find fault with such
 * a hold, it ends where the loss began. Fences stay in the history. The history that is to be judged
 * goes to another file. Returns that, and how many holds end earlier in it.
 */
export function excused(
  file: string,
  losses: readonly Loss[],
  leaseMs: number,
): { readonly judged: string; readonly count: number } {
  if (losses.length === 0) return { judged: file, count: 0 }
  const records = [...recordsOf(file)]
  const clips = new Clips(records, losses, leaseMs * 1000)
  // Another fault may show only when one hold is out of the way.
  while (clips.add(checkHistory(clips.applied()).flatMap(({ records: atFault }) => atFault))) {}
  if (clips.size === 0) return { judged: file, count: 0 }
  const judged = file.replace(/(\.jsonl)?$/, '-excused$1')
  write(judged, clips.applied())
  return { judged, count: clips.size }
}

/** The holds that end where a loss began. */
class Clips {
  readonly #records: readonly HistoryRecord[]
  readonly #losses: readonly Loss[]
  readonly #leaseUs: number
  readonly #acquired = new Map<string, AcquireRecord>()
  readonly #ended = new Map<string, EndRecord>()
  readonly #clipped = new Map<string, EndRecord>()

  constructor(records: readonly HistoryRecord[], losses: readonly Loss[], leaseUs: number) {
    this.#records = records
    this.#losses = losses
    this.#leaseUs = leaseUs
    for (const record of records) {
      if (record.type === 'acquire') this.#acquired.set(record.hold, record)
      if (record.type === 'end') this.#ended.set(record.hold, record)
    }
  }

  get size(): number {
    return this.#clipped.size
  }

  applied(): HistoryRecord[] {
    return this.#records.map((record) =>
      record.type === 'end' ? (this.#clipped.get(record.hold) ?? record) : record,
    )
  }

  /** Whether any of these is a hold that may end earlier, and does not yet. */
  add(atFault: readonly HistoryRecord[]): boolean {
    const before = this.size
    for (const record of atFault) {
      const hold = 'hold' in record ? record.hold : undefined
      if (hold === undefined || this.#clipped.has(hold)) continue
      const [acquired, end] = [this.#acquired.get(hold), this.#ended.get(hold)]
      const clipped = acquired && end && this.#endOf(acquired, end)
      if (clipped) this.#clipped.set(hold, clipped)
    }
    return this.size > before
  }

  #endOf({ from, to }: AcquireRecord, end: EndRecord): EndRecord | undefined {
    const heardAt = to ?? from
    const loss = this.#losses.find(
      (each) => heardAt <= each.to && end.from >= each.from && end.from <= each.to + this.#leaseUs,
    )
    // It may have ended before its holder heard of it, which is a moment after the grant.
    const earliest = Math.max(from, heardAt - ON_ITS_WAY_US)
    return loss && { ...end, from: Math.max(earliest, Math.min(loss.from, end.from)), to: null }
  }
}

function write(file: string, records: readonly HistoryRecord[]): void {
  const output = openSync(file, 'w')
  for (const record of records) writeSync(output, `${JSON.stringify(record)}\n`)
  closeSync(output)
}
