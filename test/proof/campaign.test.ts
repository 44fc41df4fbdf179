import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { excused } from '../../proof/excused.js'
import type { AcquireRecord, HistoryRecord } from '../../proof/history.js'
import { judge } from '../../proof/judged.js'
import { keptRun } from '../../proof/kept.js'
import { reportOf } from '../../proof/report.js'
import { pages } from '../../proof/results.js'
import { prove, type RunResult } from '../../proof/run.js'
import { sqlite } from '../../proof/stores/sqlite.js'
import { measured } from '../../proof/windows.js'
import { keptWorlds, pageOf as worldsPage } from '../../proof/worlds.mjs'

describe('the campaign of `npm run prove`', () => {
  it('runs on SQLite, with figures that are those of its history', { timeout: 120_000 }, async () => {
    const file = newFile()
    const store = { ...sqlite, workers: 3 }
    const run = await prove(store, { seed: 7, minutes: 0.12, file })
    expect(run.violations).toEqual([])
    const records = recordsIn(file)
    const of = (type: HistoryRecord['type']): HistoryRecord[] => records.filter((each) => each.type === type)
    const granted = of('acquire').filter((each) => each.to !== null)
    expect(granted.length).toBe(run.grants)
    expect(of('fault').length).toBe(run.windows.length)
    expect(of('write').filter((each) => 'isAccepted' in each && each.isAccepted === false).length).toBe(
      run.refused,
    )
    expect(run.windows.length).toBeGreaterThan(0)
    expect(reportOf(store, [keptRun(run, 'npm run prove')])).toContain(
      `| grants | ${run.grants.toLocaleString('en-US')} |`,
    )
    await failsWith(file, records)
  })

  /** The last holder of a lock, and another one at the same time with the same fence. */
  async function failsWith(file: string, records: readonly HistoryRecord[]): Promise<void> {
    const isExclusive = (each: HistoryRecord): each is AcquireRecord =>
      each.type === 'acquire' && each.kind === 'mutex' && each.to !== null
    const last = records.findLast(isExclusive)
    const planted = { ...last, hold: 'planted/1' }
    const end = { type: 'end', hold: 'planted/1', from: (last?.to ?? 0) + 1_000_000, to: null }
    appendFileSync(file, `${JSON.stringify(planted)}\n${JSON.stringify(end)}\n`)
    expect(judge(file).violations).not.toEqual([])
  }

  it('measures what happened between the start of a fault and the end of the recovery', () => {
    const window = { faults: ['a'], from: 1_000_000, to: 2_000_000, recoveredAt: 2_500_000, boundMs: 3000 }
    const grantsAt = [2_400_000, 900_000, 1_100_000, 1_900_000, 2_500_000, 2_600_000]
    expect(measured([window], { grantsAt, lossesAt: [1_500_000], refusalsAt: [999_999] })).toEqual([
      {
        ...{ faults: ['a'], lastedMs: 1000, grants: 4, grantsBefore: 2, losses: 1, refused: 0 },
        ...{ gapMs: 800, recoveryMs: 500, boundMs: 3000 },
      },
    ])
  })

  it('ends holds from before a loss of data where it began, and no others', () => {
    const file = newFile()
    const hold = (name: string, from: number, until: number): object[] => [
      { type: 'acquire', lock: 'a', kind: 'mutex', hold: name, from, to: from + 1, fence: from },
      { type: 'end', hold: name, from: until, to: until + 1 },
    ]
    const records = [hold('before', 10, 40), hold('earlier', 1, 5), hold('after', 30, 60)].flat()
    appendFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''))
    expect(excused(file, [{ from: 20, to: 25 }])).toBe(1)
    expect(recordsIn(file).filter(({ type }) => type === 'end')).toEqual([
      { type: 'end', hold: 'before', from: 20, to: null },
      ...[hold('earlier', 1, 5)[1], hold('after', 30, 60)[1]],
    ])
  })

  it('lets a hold that was heard of after a loss end when it began, if others held meanwhile', () => {
    const asked = { type: 'acquire', lock: 'a', kind: 'mutex', hold: 'late', from: 10, to: 24, fence: 1 }
    const alone = [asked, { type: 'end', hold: 'late', from: 26, to: 27 }]
    const next = { type: 'acquire', lock: 'a', kind: 'mutex', hold: 'next', from: 21, to: 22, fence: 2 }
    const both = [...alone, next, { type: 'end', hold: 'next', from: 23, to: 24 }]
    const excusedIn = (records: readonly object[]): object[] => {
      const file = newFile()
      appendFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''))
      excused(file, [{ from: 20, to: 25 }])
      return recordsIn(file)
    }
    expect(excusedIn(alone)).toEqual(alone)
    expect(excusedIn(both)[1]).toEqual({ type: 'end', hold: 'late', from: 20, to: null })
  })

  it('counts a run only if enough happened', () => {
    const window = { faults: ['a'], lastedMs: 1, grants: 30, grantsBefore: 0, losses: 0, refused: 5 }
    const times = { gapMs: 1, recoveryMs: 1, boundMs: 3000 }
    const run: RunResult = {
      ...{ seed: 1, seconds: 1, grants: 30, losses: 0, refused: 5, failures: 0, excused: 0, excuses: [] },
      ...{ windows: [{ ...window, ...times }], violations: [], porcupine: null },
    }
    expect(keptRun(run, '').doesCount).toBe(true)
    expect(keptRun({ ...run, refused: 4 }, '').doesCount).toBe(false)
    expect(keptRun({ ...run, windows: [{ ...window, ...times, grants: 29 }] }, '').doesCount).toBe(false)
  })

  it('has written the pages from the results that are kept', () => {
    for (const [path, text] of Object.entries(pages())) expect(readFileSync(path, 'utf8')).toBe(text)
    const worlds = new URL('../../docs/proof/worlds.md', import.meta.url)
    expect(readFileSync(worlds, 'utf8')).toBe(worldsPage(keptWorlds()))
  })
})

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-history-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'history.jsonl')
}

function recordsIn(file: string): HistoryRecord[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}
