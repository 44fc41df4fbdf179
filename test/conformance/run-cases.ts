import { describe, it } from 'vitest'
import type { LockOrder } from '../../src/primitives/options.js'
import { type ConformanceCase, type ConformanceSubject, conformanceCases } from '../../src/testing/index.js'

/** More than the suite itself allows. */
const LIMIT_MS = 240_000

/** Every case once: one that comes in several guises is run in one of them, another one each time. */
export const EACH_ONCE = 'each case once'

/** Which of the cases to run, where others run the rest. */
export type Share = typeof EACH_ONCE | { /** From 0. */ readonly part: number; readonly of: number }

const WHOLE: Share = { part: 0, of: 1 }
const GUISE = / \((?:writer|only permit|last permit)\)$/
/** `npm run test:all`: every case on every store through every client, in both orders. */
const isAll = process.env['HOLDFAST_TEST_ALL'] === '1'
const inFull = new Set<string>()

/** By title, whatever lock it is run with: why a case is not for this store. */
export type Skips = Readonly<Record<string, string>>

/**
 * Declares every case, or the share of one of several ways to the same store: their cases are dealt out one by one, so that each way meets
 * each kind of lock (`of` is odd, or few: a case comes in four guises, one after the other). Those that do not mind company run side by side.
 */
export function runCases(subject: ConformanceSubject, share: Share = WHOLE, skips: Skips = {}): void {
  runInOrder('cohort', subject, share, skips)
}

/** The same in strict order of arrival, where nothing is passed on inside a process. */
export function runStrictCases(subject: ConformanceSubject, share: Share = WHOLE, skips: Skips = {}): void {
  runInOrder('strict', subject, share, skips)
}

function runInOrder(order: LockOrder, subject: ConformanceSubject, share: Share, skips: Skips): void {
  const { name } = subject
  const strict = { ...subject, name: `${name}, in strict order`, order: 'strict' } as const
  if (!isAll) return run(order === 'strict' ? strict : subject, share, skips)
  // Whichever of the two comes first declares both.
  if (inFull.has(name)) return
  inFull.add(name)
  run(subject, WHOLE, skips)
  run(strict, WHOLE, skips)
}

function run(subject: ConformanceSubject, share: Share, skips: Skips): void {
  const cases = dealt(conformanceCases(subject), share).map((each) => {
    const skip = skips[each.title] ?? skips[plainTitle(each)]
    return skip === undefined ? each : { ...each, skip }
  })
  const title = titleOf(subject, share)
  const [alone, together] = [cases.filter((each) => each.alone), cases.filter((each) => !each.alone)]
  describe.concurrent(title, () => declare(together))
  // A small share may have none of them, and an empty suite is taken for a mistake.
  if (alone.length > 0) describe.sequential(`${title}, one at a time`, () => declare(alone))
}

function titleOf({ name }: ConformanceSubject, share: Share): string {
  if (share === EACH_ONCE) return `${name}, ${EACH_ONCE}`
  return share.of === 1 ? name : `${name}, one case in ${share.of}`
}

function dealt(cases: readonly ConformanceCase[], share: Share): readonly ConformanceCase[] {
  if (share !== EACH_ONCE) return cases.filter((_each, index) => index % share.of === share.part)
  const byTitle = new Map<string, ConformanceCase[]>()
  for (const each of cases) byTitle.set(plainTitle(each), [...(byTitle.get(plainTitle(each)) ?? []), each])
  return [...byTitle.values()].map((guises, index) => guises[index % guises.length] as ConformanceCase)
}

function plainTitle({ title }: ConformanceCase): string {
  return title.replace(GUISE, '')
}

function declare(cases: readonly ConformanceCase[]): void {
  for (const { title, skip, run } of cases) {
    if (skip === undefined) it(title, run, LIMIT_MS)
    else it.skip(`${title} (${skip})`)
  }
}
