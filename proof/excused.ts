import { closeSync, openSync, renameSync, writeSync } from 'node:fs'
import type { AcquireRecord, EndRecord, HistoryRecord } from './history.js'
import { checkHistory } from './judge/check.js'
import { recordsOf } from './records.js'

/** A time in which the store may have forgotten holds, as its page says. */
export interface Loss {
  readonly from: number
  readonly to: number
}

/**
 * Nobody promises that a hold excludes others after a loss that came after its grant. So where the
 * judges would find fault with such a hold, it ends where the loss began. Fences stay in the history.
 * Returns how many holds that were.
 */
export function excused(file: string, losses: readonly Loss[]): number {
  if (losses.length === 0) return 0
  const records = [...recordsOf(file)]
  const clips = new Clips(records, losses)
  // Another fault may show only when one hold is out of the way.
  while (clips.add(checkHistory(clips.applied()).flatMap(({ records: atFault }) => atFault))) {}
  if (clips.size > 0) write(file, clips.applied())
  return clips.size
}

/** The holds that end where a loss began. */
class Clips {
  readonly #records: readonly HistoryRecord[]
  readonly #losses: readonly Loss[]
  readonly #acquired = new Map<string, AcquireRecord>()
  readonly #ended = new Map<string, EndRecord>()
  readonly #clipped = new Map<string, EndRecord>()

  constructor(records: readonly HistoryRecord[], losses: readonly Loss[]) {
    this.#records = records
    this.#losses = losses
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
      const clipped = acquired && end && clippedBy(this.#losses, acquired, end)
      if (clipped) this.#clipped.set(hold, clipped)
    }
    return this.size > before
  }
}

function clippedBy(
  losses: readonly Loss[],
  { from, to }: AcquireRecord,
  end: EndRecord,
): EndRecord | undefined {
  const grantedAt = to ?? from
  const loss = losses.find((each) => grantedAt <= each.to && end.from >= each.from)
  // It may have ended before its holder heard of it.
  return loss && { ...end, from: Math.max(from, Math.min(loss.from, end.from)), to: null }
}

function write(file: string, records: readonly HistoryRecord[]): void {
  const output = openSync(`${file}.excused`, 'w')
  for (const record of records) writeSync(output, `${JSON.stringify(record)}\n`)
  closeSync(output)
  renameSync(`${file}.excused`, file)
}
