import { once } from 'node:events'
import { createWriteStream, renameSync } from 'node:fs'
import type { AcquireRecord, EndRecord, HistoryRecord } from './history.js'
import { recordsOf } from './records.js'

/** A time in which the store may have forgotten holds, as its page says. */
export interface Loss {
  readonly from: number
  readonly to: number
}

/**
 * Lets holds that were granted before the end of a loss end where it began: nobody promises that
 * they exclude others from then on. Their fences stay in the history. Returns how many there are.
 */
export async function excused(file: string, losses: readonly Loss[]): Promise<number> {
  if (losses.length === 0) return 0
  const open = new Map<string, AcquireRecord>()
  let count = 0
  const clip = (record: HistoryRecord): HistoryRecord => {
    if (record.type === 'acquire') open.set(record.hold, record)
    if (record.type !== 'end') return record
    const acquired = open.get(record.hold)
    open.delete(record.hold)
    const clipped = acquired ? clippedBy(losses, acquired, record) : record
    if (clipped !== record) count++
    return clipped
  }
  const output = createWriteStream(`${file}.excused`)
  for (const record of recordsOf(file))
    if (!output.write(`${JSON.stringify(clip(record))}\n`)) await once(output, 'drain')
  output.end()
  await once(output, 'finish')
  renameSync(`${file}.excused`, file)
  return count
}

function clippedBy(losses: readonly Loss[], { from, to }: AcquireRecord, end: EndRecord): EndRecord {
  const grantedAt = to ?? from
  const loss = losses.find((each) => grantedAt <= each.to && end.from >= each.from)
  // It may have ended before its holder heard of it.
  return loss ? { ...end, from: Math.max(from, Math.min(loss.from, end.from)), to: null } : end
}
