import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import type { HistoryRecord } from '../../proof/history.js'
import { checkHistory } from '../../proof/judge/check.js'
import { describeJudgement, type Judgement, judge } from '../../proof/judge/index.js'
import type { Rule } from '../../proof/judge/violation.js'
import {
  mutexHistories,
  readWriteHistories,
  registerHistories,
  semaphoreHistories,
  waiterHistories,
} from './arbitraries.js'
import { fault, held, read, unanswered, wrote } from './histories.js'
import { describeWithPorcupine } from './porcupine.js'

/** HOLDFAST_RUNS=20000 runs more of them. */
const RUNS = Number(process.env['HOLDFAST_RUNS'] ?? 1000)
/** So many are judged together, each on a lock or register of its own. */
const BATCH = 100
/** The histories here are some microseconds long. */
const PATIENCE_MS = 0.01

/** The process stands still while Porcupine judges: that is no reason to run a test again. */
const NO_PAUSES = { retry: 0 }

const folder = mkdtempSync(join(tmpdir(), 'holdfast-judge-'))
const file = join(folder, 'history.jsonl')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function judged(records: readonly HistoryRecord[]): Judgement {
  writeFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''))
  return judge(file, { patienceMs: PATIENCE_MS })
}

/** The same history of locks, so much later. */
function later(records: readonly HistoryRecord[], us: number): HistoryRecord[] {
  return records.map((record) => ({
    ...record,
    from: record.from + us,
    to: record.to === null ? null : record.to + us,
  })) as HistoryRecord[]
}

/** The same history on a lock and a register of its own. */
function apart(records: readonly HistoryRecord[], index: number): HistoryRecord[] {
  return records.map((record) => ({
    ...record,
    ...('lock' in record ? { lock: `a${index}` } : {}),
    ...('register' in record ? { register: `r${index}` } : {}),
    ...('hold' in record ? { hold: `${index}/${record.hold}` } : {}),
  }))
}

const first = held('0/1', { fence: 1, asked: [0, 10], ended: [20, 25] })
const reader = held('0/1', { kind: 'read', fence: 1, asked: [0, 10], ended: [20, 25] })
const permits = { kind: 'semaphore', capacity: 3 } as const
const some = held('0/1', { ...permits, permits: 2, fence: 1, asked: [0, 10], ended: [20, 25] })

const GOOD: Record<string, HistoryRecord[]> = {
  'nothing at all': [],
  'one hold after the other': [...first, ...held('0/2', { fence: 2, asked: [0, 30], ended: [40, 45] })],
  'a grant that is answered while the release is': [
    ...first,
    ...held('0/2', { fence: 2, asked: [0, 22], ended: [40, 45] }),
  ],
  // As after a fail-over: the fences alone say in which order they were granted.
  'hundreds of holds that may all have come and gone at once': Array.from({ length: 500 }, (_, n) =>
    held(`0/${n}`, { fence: n + 1, asked: [0, 1000 + n], ended: [0, null] }),
  ).flat(),
  'a grant right at the end of a lost hold': [
    ...held('0/1', { fence: 1, asked: [0, 10], ended: [20, null] }),
    ...held('0/2', { fence: 2, asked: [0, 20], ended: [40, 45] }),
  ],
  'a hold of which nothing more is known': [
    ...held('0/1', { fence: 1, asked: [0, 10] }),
    ...held('0/2', { fence: 2, asked: [0, 12], ended: [40, 45] }),
  ],
  'a hold that was over before its holder knew of it': [
    ...held('0/1', { fence: 1, asked: [0, 30], ended: [5, null] }),
    ...held('0/2', { fence: 2, asked: [6, 10], ended: [40, 45] }),
  ],
  'a request without an answer': [...first, unanswered('0/2', 5)],
  'readers together, whose fences say who was first': [
    ...reader,
    ...held('0/2', { kind: 'read', fence: 3, asked: [0, 12], ended: [30, 35] }),
    ...held('0/3', { kind: 'read', fence: 2, asked: [0, 14], ended: [30, 35] }),
    ...held('0/4', { kind: 'write', fence: 4, asked: [0, 40], ended: [50, 55] }),
  ],
  'as many permits as there are': [
    ...some,
    ...held('0/2', { ...permits, permits: 1, fence: 2, asked: [0, 10], ended: [40, 45] }),
    ...held('0/3', { ...permits, permits: 2, fence: 3, asked: [0, 20], ended: [40, 45] }),
  ],
  'a waiter while others hold': [...first, unanswered('0/2', 0, 30)],
  'a waiter that has waited for a short time': [...first, unanswered('0/2', 26, 33)],
  'a waiter that died': [...first, unanswered('0/2', 0)],
  'a waiter, and a fault': [...first, unanswered('0/2', 0, 60), fault(26, 55)],
  'writes and reads of successive holders': [
    read(null, 1, [0, 1]),
    wrote('one', 1, [2, 3]),
    read('one', 2, [4, 5]),
    wrote('two', 2, [6, 7]),
    read('two', 3, [8, 9]),
  ],
  'a stale write that is refused': [wrote('two', 2, [0, 1]), wrote('one', 1, [2, 3], false)],
  'a stale write that is refused because of a read': [read(null, 2, [0, 1]), wrote('one', 1, [2, 3], false)],
  'a write of a late holder before the new one writes': [
    wrote('one', 1, [0, 9]),
    wrote('two', 2, [3, 4]),
    read('two', 2, [5, 6]),
  ],
  'a write without an answer that is read': [wrote('one', 1, [0, null], null), read('one', 2, [8, 9])],
  'a write without an answer that is not read': [wrote('one', 1, [0, null], null), read(null, 2, [8, 9])],
  'a refusal because of a write without an answer': [
    wrote('two', 2, [0, null], null),
    wrote('one', 1, [5, 6], false),
  ],
}

const BAD: Record<string, [rule: Rule, records: HistoryRecord[]]> = {
  'two holds at one time': [
    'overlap',
    [...first, ...held('0/2', { fence: 2, asked: [0, 15], ended: [30, 35] })],
  ],
  'a hold before a lost one ended': [
    'overlap',
    [
      ...held('0/1', { fence: 1, asked: [0, 10], ended: [20, null] }),
      ...held('0/2', { fence: 2, asked: [0, 19], ended: [40, 45] }),
    ],
  ],
  'a reader beside a writer': [
    'overlap',
    [...reader, ...held('0/2', { kind: 'write', fence: 2, asked: [0, 15], ended: [30, 35] })],
  ],
  'a writer beside a reader': [
    'overlap',
    [
      ...held('0/1', { kind: 'write', fence: 1, asked: [0, 10], ended: [20, 25] }),
      ...held('0/2', { kind: 'read', fence: 2, asked: [0, 15], ended: [30, 35] }),
    ],
  ],
  'a fence that falls': [
    'fence',
    [
      ...held('0/1', { fence: 2, asked: [0, 10], ended: [20, 25] }),
      ...held('0/2', { fence: 1, asked: [26, 30], ended: [40, 45] }),
    ],
  ],
  'a fence that is given twice': [
    'fence',
    [...first, ...held('0/2', { fence: 1, asked: [26, 30], ended: [40, 45] })],
  ],
  'a fence of a writer below that of an earlier reader': [
    'fence',
    [
      ...held('0/1', { kind: 'read', fence: 2, asked: [0, 10], ended: [20, 25] }),
      ...held('0/2', { kind: 'write', fence: 1, asked: [26, 30], ended: [40, 45] }),
    ],
  ],
  'a fence of a reader below that of an earlier writer': [
    'fence',
    [
      ...held('0/1', { kind: 'write', fence: 2, asked: [0, 10], ended: [20, 25] }),
      ...held('0/2', { kind: 'read', fence: 1, asked: [26, 30], ended: [40, 45] }),
    ],
  ],
  'a fence of a reader below that of an earlier reader': [
    'fence',
    [
      ...held('0/1', { kind: 'read', fence: 2, asked: [0, 10], ended: [40, 45] }),
      ...held('0/2', { kind: 'read', fence: 1, asked: [11, 15], ended: [40, 45] }),
    ],
  ],
  'two readers with one fence': [
    'fence',
    [...reader, ...held('0/2', { kind: 'read', fence: 1, asked: [0, 10], ended: [30, 35] })],
  ],
  'a fence of a permit below that of an earlier one': [
    'fence',
    [
      ...held('0/1', { ...permits, fence: 2, asked: [0, 10], ended: [40, 45] }),
      ...held('0/2', { ...permits, fence: 1, asked: [11, 15], ended: [40, 45] }),
    ],
  ],
  'a reader whose fence says that it was granted before a writer that had not ended': [
    'fence',
    [
      ...held('0/1', { kind: 'read', fence: 1, asked: [0, 10], ended: [50, 55] }),
      ...held('0/2', { kind: 'write', fence: 2, asked: [0, 60], ended: [60, null] }),
      ...held('0/3', { kind: 'read', fence: 3, asked: [0, 20], ended: [50, 55] }),
    ],
  ],
  'more permits than there are, as the fences say who came first': [
    'permits',
    [
      ...held('0/1', { ...permits, permits: 3, fence: 1, asked: [0, 10], ended: [30, 35] }),
      ...held('0/2', { ...permits, permits: 1, fence: 2, asked: [0, 60], ended: [5, null] }),
      ...held('0/3', { ...permits, permits: 1, fence: 3, asked: [0, 20], ended: [5, null] }),
    ],
  ],
  'more permits than there are': [
    'permits',
    [...some, ...held('0/2', { ...permits, permits: 2, fence: 2, asked: [0, 15], ended: [40, 45] })],
  ],
  'a waiter of a free lock': ['lost waiter', [...first, unanswered('0/2', 0, 60)]],
  'a waiter of a free lock after a fault': [
    'lost waiter',
    [...first, unanswered('0/2', 0, 60), fault(26, 45)],
  ],
  'a stale write that is accepted': [
    'stale call accepted',
    [wrote('two', 2, [0, 1]), wrote('one', 1, [2, 3])],
  ],
  'a stale read that is accepted': ['stale call accepted', [wrote('two', 2, [0, 1]), read('two', 1, [2, 3])]],
  'a refusal without a reason': [
    'fresh call refused',
    [wrote('one', 1, [0, 1]), wrote('two', 2, [2, 3], false)],
  ],
  'a refusal before its reason': [
    'fresh call refused',
    [wrote('one', 1, [0, 1], false), wrote('two', 2, [2, 3])],
  ],
  'an update that is lost': [
    'lost update',
    [wrote('one', 1, [0, 1]), wrote('two', 2, [2, 3]), read('one', 3, [4, 5])],
  ],
  'a read of a write that was refused': [
    'lost update',
    [wrote('two', 2, [0, 1]), wrote('one', 1, [2, 3], false), read('one', 3, [4, 5])],
  ],
  'a refusal for a write that cannot have been made': [
    'fresh call refused',
    [wrote('two', 2, [0, null], null), read(null, 1, [0, 0], false), read(null, 3, [1, 1])],
  ],
  'a refusal for a write that was made later': [
    'fresh call refused',
    [
      wrote('late', 3, [0, null], null),
      read(null, 1, [0, 0], false),
      wrote('next', 3, [1, 1]),
      read('late', 4, [0, 1]),
    ],
  ],
  'a read of what nobody wrote': ['lost update', [read('one', 1, [0, 1])]],
  'a read of a write that comes later': [
    'lost update',
    [read('one', 1, [0, 1]), wrote('one', 2, [2, null], null)],
  ],
}

describeWithPorcupine(
  'both judges',
  () => {
    it.each(Object.entries(GOOD))('accept %s', (_title, records) => {
      expect(judged(records)).toMatchObject({ verdict: 'passed', violations: [], differences: [] })
    })

    it.each(Object.entries(BAD))('find %s', (_title, [rule, records]) => {
      const judgement = judged(records)
      expect(judgement.violations.map((violation) => violation.rule)).toContain(rule)
      expect(judgement.porcupine.verdict).toBe('violated')
      expect(judgement.differences).toEqual([])
      expect(describeJudgement(judgement)).toContain('is not linearizable')
    })

    it('judge times of a machine that was started a year ago', () => {
      const YEAR_US = 365 * 24 * 3600 * 1e6
      expect(judged(later(first, YEAR_US))).toMatchObject({ verdict: 'passed' })
      const [, overlapping] = BAD['two holds at one time'] ?? []
      expect(judged(later(overlapping ?? [], YEAR_US)).porcupine.verdict).toBe('violated')
    })

    it('find the two holds at fault in a long history', () => {
      const records = Array.from({ length: 3000 }, (_, index) =>
        held(`0/${index}`, {
          fence: index + 1,
          // Nearly always somebody waits.
          asked: [Math.max(0, index * 10 - 100), index * 10 + 1],
          ended: [index * 10 + (index === 2000 ? 13 : 8), index * 10 + 15],
        }),
      ).flat()
      const { violations, porcupine } = judged(records)
      const holdsIn = (found: readonly HistoryRecord[]): string[] => [
        ...new Set(found.flatMap((record) => ('hold' in record ? [record.hold] : []))),
      ]
      expect(violations.map((violation) => holdsIn(violation.records))).toEqual([['0/2000', '0/2001']])
      const [lock] = porcupine.objects
      expect(lock?.parts).toBeGreaterThan(20)
      expect(lock?.faults?.map((found) => holdsIn(found.records).toSorted())).toEqual([['0/2000', '0/2001']])
    })

    it.each([
      ['a mutex', mutexHistories],
      ['a read-write lock', readWriteHistories],
      ['a semaphore', semaphoreHistories],
      ['a mutex with a waiter', waiterHistories],
      ['a register', registerHistories],
    ] as const)('agree on generated histories of %s', (_title, histories) => {
      let violated = 0
      const batches = fc.array(histories as fc.Arbitrary<HistoryRecord[]>, {
        minLength: 1,
        maxLength: BATCH,
        size: 'max',
      })
      fc.assert(
        fc.property(batches, (batch) => {
          const { differences, porcupine } = judged(batch.flatMap(apart))
          expect(differences).toEqual([])
          expect(porcupine.verdict).not.toBe('undecided')
          violated += porcupine.objects.filter(({ verdict }) => verdict === 'violated').length / batch.length
        }),
        { numRuns: RUNS / BATCH },
      )
      // Otherwise it would be easy to agree.
      const share = violated / (RUNS / BATCH)
      expect(Math.min(share, 1 - share)).toBeGreaterThan(0.02)
    })
  },
  NO_PAUSES,
)

describe('the judgement', () => {
  it('says what is missing, and does not pass, where Porcupine is not there', () => {
    const porcupine = { verdict: 'skipped', objects: [], reason: 'go not installed' } as const
    const judgement = {
      verdict: 'undecided',
      records: 0,
      violations: [],
      porcupine,
      differences: [],
    } as const
    expect(describeJudgement(judgement)).toContain('Porcupine: skipped: go not installed')
  })
})

it('counts more violations than a call takes arguments', () => {
  const count = 200_000
  const twins = Array.from({ length: count }, (_, n) => held(`0/${n}`, { fence: 1, asked: [n, n] })).flat()
  expect(checkHistory(twins)).toHaveLength(count - 1)
})
