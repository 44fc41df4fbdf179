import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Crowd, type Worker } from '../../proof/crowd.js'
import { excused, type Loss } from '../../proof/excused.js'
import type { AcquireRecord, EndRecord, HistoryRecord } from '../../proof/history.js'
import { checkHistory } from '../../proof/judge/check.js'
import { judge } from '../../proof/judged.js'
import { keptRun } from '../../proof/kept.js'
import { CALM, type Nemesis } from '../../proof/nemesis.js'
import { reportOf } from '../../proof/report.js'
import { pages } from '../../proof/results.js'
import { prove, type RunResult } from '../../proof/run.js'
import type { ProvedStore } from '../../proof/store.js'
import { sqlite } from '../../proof/stores/sqlite.js'
import { measured, type Span, unexplained, type Window } from '../../proof/windows.js'
import { keptWorlds, pageOf as worldsPage } from '../../proof/worlds.mjs'
import { eventually } from '../../src/testing/conformance/checks.js'

const LEASE_MS = 1

describe('the campaign of `npm run prove`', () => {
  it('runs on SQLite, with figures that are those of its history', { timeout: 120_000 }, async () => {
    const file = newFile()
    // So short a run may not sync: a slow disk would strike nothing.
    const start: ProvedStore['start'] = async () => {
      const running = await sqlite.start()
      return { ...running, nemeses: running.nemeses.filter(({ hits }) => hits !== 'disk') }
    }
    const store = { ...sqlite, workers: 3, start }
    const run = await prove(store, { seed: 7, minutes: 0.12, file })
    expect(run.violations).toEqual([])
    const records = recordsIn(file)
    const of = (type: HistoryRecord['type']): HistoryRecord[] => records.filter((each) => each.type === type)
    const granted = of('acquire').filter((each) => each.to !== null)
    expect(granted.length).toBe(run.grants)
    expect(of('fault').length).toBe(run.windows.filter(({ faults }) => faults.join() !== CALM).length)
    expect(of('write').filter((each) => 'isAccepted' in each && each.isAccepted === false).length).toBe(
      run.refused,
    )
    expect(run.windows.length).toBeGreaterThan(0)
    expect(reportOf(store, [keptRun(run, 'npm run prove', '1234567')])).toContain(
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
    const grantsAt = [2_400_000, 900_000, 1_100_000, 1_900_000, 2_500_000, 2_600_000]
    const moments = {
      ...{ grantsAt, losses: [{ from: 1_000_000, at: 1_500_000, lateUs: 0 }], refusalsAt: [999_999] },
      ...{ unavailable: [{ from: 1_000_000, at: 2_000_000, lateUs: 0 }], failures: [] },
    }
    expect(measured([windowOf(nemesisOf({}))], moments)).toMatchObject([
      {
        ...{ faults: ['a'], grants: 4, grantsBefore: 2, losses: 1, refused: 0 },
        ...{ unavailable: 1, gapMs: 800, recoveryMs: 500, servedMs: 600, boundMs: 3000 },
      },
    ])
  })

  it('says what happened too seldom in a window', () => {
    const times = (count: number): number[] => Array.from({ length: count }, (_, n) => 1_500_000 + n)
    const lacksIn = (faults: readonly Nemesis[], grants: number, refused: number, lost: number): number => {
      const losses = times(lost).map((at) => ({ from: at - 1, at, lateUs: 0 }))
      const moments = { grantsAt: times(grants), refusalsAt: times(refused), losses }
      const [result] = measured([windowOf(...faults)], { ...moments, unavailable: [], failures: [] })
      return result?.lacks.length ?? Number.NaN
    }
    expect(lacksIn([nemesisOf({})], 30, 5, 0)).toBe(0)
    expect(lacksIn([nemesisOf({})], 29, 5, 0)).toBe(1)
    expect(lacksIn([nemesisOf({})], 30, 4, 0)).toBe(1)
    expect(lacksIn([nemesisOf({ stopsAll: true })], 0, 0, 0)).toBe(0)
    expect(lacksIn([nemesisOf({ endsHolds: true })], 30, 5, 1)).toBe(0)
    expect(lacksIn([nemesisOf({ endsHolds: true })], 30, 5, 0)).toBe(1)
    // Of two, one may leave nothing to do to the other.
    expect(lacksIn([nemesisOf({ endsHolds: true }), nemesisOf({})], 0, 5, 0)).toBe(0)
  })

  it('takes what fails without a fault for a violation', () => {
    const inside = { from: 1_100_000, at: 1_200_000, lateUs: 500_000 }
    const found = (nemesis: Nemesis, span: Span): string[] =>
      unexplained(
        [windowOf(nemesis)],
        { ...{ grantsAt: [], refusalsAt: [], unavailable: [] }, losses: [span], failures: [span] },
        2000,
      )
    const calm = nemesisOf({ hits: 'nothing' })
    expect(found(calm, inside)).toEqual(['Without a fault: 1 lost holds', 'Without a fault: 1 calls failed'])
    expect(found(calm, { ...inside, from: 900_000 })).toEqual([])
    // Its process stood still.
    expect(found(calm, { ...inside, lateUs: 500_001 })).toEqual([])
    expect(found(nemesisOf({}), inside)).toEqual([])
  })

  it('ends holds from before a loss of data where it began, and no others', () => {
    const file = newFile()
    const hold = (name: string, from: number, until: number): object[] => [
      { type: 'acquire', lock: 'a', kind: 'mutex', hold: name, from, to: from + 1, fence: from },
      { type: 'end', hold: name, from: until, to: until + 1 },
    ]
    const records = [hold('before', 10, 40), hold('earlier', 1, 5), hold('after', 30, 60)].flat()
    appendFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''))
    const { judged, count } = excused(file, [{ from: 20, to: 25 }], LEASE_MS)
    expect(count).toBe(1)
    // What happened stays there to be read.
    expect(recordsIn(file)).toEqual(records)
    expect(recordsIn(judged).filter(({ type }) => type === 'end')).toEqual([
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
      return recordsIn(excused(file, [{ from: 20, to: 25 }], LEASE_MS).judged)
    }
    expect(excusedIn(alone)).toEqual(alone)
    expect(excusedIn(both)[1]).toEqual({ type: 'end', hold: 'late', from: 20, to: null })
  })

  it('excuses no hold that goes on for longer than a lease after a loss', () => {
    const held = (hold: string, from: number, until: number, fence: number): object[] => [
      { type: 'acquire', lock: 'a', kind: 'mutex', hold, from, to: from, fence },
      { type: 'end', hold, from: until, to: null },
    ]
    const until = 25 + 1000 * LEASE_MS
    const violationsIn = (end: number): number =>
      violationsOf([...held('1/1', 10, end, 1), ...held('2/1', 22, end, 2)], { from: 20, to: 25 })
    expect(violationsIn(until)).toBe(0)
    expect(violationsIn(until + 1)).toBe(1)
  })

  it('excuses a grant that was on its way for a second at most, and so no lower fence', () => {
    const second = 1_000_000
    const grant = (hold: string, from: number, to: number, fence: number, until: number): object[] => [
      { type: 'acquire', lock: 'a', kind: 'mutex', hold, from, to, fence },
      { type: 'end', hold, from: until, to: null },
    ]
    const violationsIn = (heardAt: number): number =>
      violationsOf(
        [
          ...grant('1/1', second, heardAt, 1, heardAt + second),
          ...grant('2/1', 2 * second, 3 * second, 2, 3 * second + 1),
        ],
        { from: 2 * second, to: 9 * second },
        2000,
      )
    expect(violationsIn(4 * second)).toBe(0)
    expect(violationsIn(4 * second + 1)).toBe(1)
  })

  it('excuses no hold that was asked for after a loss, and of two only the earlier one', () => {
    const held = (hold: string, from: number, until: number, fence: number): object[] => [
      { type: 'acquire', lock: 'a', kind: 'mutex', hold, from, to: from, fence },
      { type: 'end', hold, from: until, to: null },
    ]
    const loss = { from: 10, to: 20 }
    expect(violationsOf([...held('1/1', 20, 60, 1), ...held('2/1', 30, 70, 2)], loss)).toBe(0)
    expect(violationsOf([...held('1/1', 21, 60, 1), ...held('2/1', 30, 70, 2)], loss)).toBe(1)
    const file = newFile()
    const both = [...held('1/1', 12, 60, 1), ...held('2/1', 15, 70, 2)]
    appendFileSync(file, both.map((record) => `${JSON.stringify(record)}\n`).join(''))
    expect(excused(file, [loss], LEASE_MS)).toMatchObject({ count: 1, violations: 1 })
  })

  it('excuses one hold that has met several, and none of these', () => {
    const held = (hold: string, from: number, to: number, until: number, fence: number): object[] => [
      { type: 'acquire', lock: 'a', kind: 'mutex', hold, from, to, fence },
      { type: 'end', hold, from: until, to: null },
    ]
    const file = newFile()
    const all = [...held('1/1', 12, 12, 60, 1), ...held('2/1', 15, 22, 30, 2), ...held('2/2', 16, 35, 70, 3)]
    appendFileSync(file, all.map((record) => `${JSON.stringify(record)}\n`).join(''))
    expect(excused(file, [{ from: 10, to: 20 }], LEASE_MS)).toMatchObject({ count: 1, violations: 2 })
  })

  it('knows until when the holds of a killed process were valid', { timeout: 60_000 }, async () => {
    const file = newFile()
    const crowd = new Crowd(file, {
      ...{ workers: 1, clients: 1, leaseMs: 60_000, askedLeaseMs: 60_000 },
      loops: [{ lock: 'long', kind: 'mutex', isLong: true }],
      wayOf: async () => ({ url: `sqlite:${file}.db` }),
    })
    await crowd.start()
    const [worker] = crowd.workers as [Worker]
    await eventually('a look at the hold', () =>
      [...worker.open.values()].some((seenAt) => seenAt > Math.max(...crowd.grantsAt)),
    )
    await crowd.kill(worker)
    await crowd.stop()
    const end = recordsIn(file).at(-1) as EndRecord
    const granted = recordsIn(file).find((each) => each.type === 'acquire' && each.hold === end.hold)
    expect(end).toMatchObject({ type: 'end', to: null })
    expect(end.from).toBeGreaterThan(granted?.to ?? Infinity)
  })

  it('finds a fault that did not take place', { timeout: 120_000 }, async () => {
    const idle: Nemesis = {
      ...{ name: 'nothing', hits: 'disk', lastsMs: 1 },
      begin: async () => async () => 0,
    }
    const store: ProvedStore = {
      ...{ ...sqlite, workers: 2, leaseMs: 500 },
      start: async () => ({ ...(await sqlite.start()), nemeses: [idle] }),
    }
    const { violations } = await prove(store, { seed: 7, minutes: 0.05, file: newFile() })
    expect(new Set(violations)).toEqual(new Set(['Nothing happened: nothing']))
  })

  it('begins a fault of the network last, and heals it first', { timeout: 120_000 }, async () => {
    const steps: string[] = []
    const recorded = (hits: 'network' | 'servers'): Nemesis => ({
      ...{ name: hits, hits, lastsMs: 1 },
      begin: async () => {
        // Each alone, and two pairs.
        if (steps.length === 8) throw new Error('enough')
        steps.push(`begin ${hits}`)
        return async () => void steps.push(`heal ${hits}`)
      },
    })
    const store: ProvedStore = {
      ...{ ...sqlite, workers: 2, leaseMs: 500 },
      start: async () => ({ ...(await sqlite.start()), nemeses: [recorded('network'), recorded('servers')] }),
    }
    await expect(prove(store, { seed: 7, minutes: 2, file: newFile() })).rejects.toThrow('enough')
    expect(steps.join()).toContain('begin servers,begin network,heal network,heal servers')
    expect(steps.join()).not.toContain('begin network,begin servers')
  })

  it('counts a run only if enough happened', () => {
    const window = { faults: ['a'], grants: 30, grantsBefore: 0, losses: 0, refused: 5, lacks: [] }
    const unavailable = 0
    const times = { gapMs: 1, recoveryMs: 1, servedMs: 1, boundMs: 3000 }
    const run: RunResult = {
      ...{ seed: 1, seconds: 1, grants: 30, losses: 0, refused: 5, unavailable, failures: 0 },
      ...{ excused: 0, excusedViolations: 0, excuses: [], violations: [], porcupine: 7 },
      windows: [{ ...window, ...times, unavailable }],
    }
    const counts = (changed: Partial<RunResult>): boolean => keptRun({ ...run, ...changed }, '', '').doesCount
    expect(counts({})).toBe(true)
    expect(counts({ windows: [] })).toBe(false)
    expect(counts({ porcupine: null })).toBe(false)
    expect(counts({ windows: [{ ...window, ...times, unavailable, lacks: ['a: no hold was lost'] }] })).toBe(
      false,
    )
  })

  it('has written the pages from the results that are kept', () => {
    for (const [path, text] of Object.entries(pages())) expect(readFileSync(path, 'utf8')).toBe(text)
    const worlds = new URL('../../docs/proof/worlds.md', import.meta.url)
    expect(readFileSync(worlds, 'utf8')).toBe(worldsPage(keptWorlds()))
  })
})

function nemesisOf(changed: Partial<Nemesis>): Nemesis {
  return { name: 'a', hits: 'servers', lastsMs: 1, begin: async () => async () => {}, ...changed }
}

function windowOf(...faults: Nemesis[]): Window {
  const times = { from: 1_000_000, to: 2_000_000, recoveredAt: 2_500_000, servedAt: 2_600_000 }
  return { faults, ...times, boundMs: 3000 }
}

/** How many violations our check finds when the loss is excused. */
function violationsOf(records: readonly object[], loss: Loss, leaseMs = LEASE_MS): number {
  const file = newFile()
  appendFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''))
  return checkHistory(recordsIn(excused(file, [loss], leaseMs).judged)).length
}

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
