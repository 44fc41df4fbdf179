import { beforeAll, describe, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import type { LockOrder } from '../../src/primitives/options.js'
import { type ConformanceCase, type ConformanceSubject, conformanceCases } from '../../src/testing/index.js'
import { dealt, EACH_ONCE, plainTitle } from './deal.mjs'

/** More than the suite itself allows. */
const LIMIT_MS = 240_000

export { EACH_ONCE }

/** Which of the cases to run, where others run the rest. */
export type Share = 'each case once' | { /** From 0. */ readonly part: number; readonly of: number }

const WHOLE: Share = { part: 0, of: 1 }
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
  describe.concurrent(title, () => {
    beforeAll(() => warmUp(subject))
    declare(together)
  })
  // A small share may have none of them, and an empty suite is taken for a mistake.
  if (alone.length > 0) describe.sequential(`${title}, one at a time`, () => declare(alone))
}

/**
 * Loads and compiles the client of the store. On a busy machine that takes seconds, in which the
 * first cases could renew nothing.
 */
async function warmUp(subject: ConformanceSubject): Promise<void> {
  const venue = await subject.open()
  const locks = new Holdfast(venue.store(), { lease: '1m', storeTimeout: '1m' })
  await locks.mutex('first').run(() => {})
  await locks.close()
  await venue.dispose()
}

function titleOf({ name }: ConformanceSubject, share: Share): string {
  if (typeof share === 'string') return `${name}, ${share}`
  return share.of === 1 ? name : `${name}, one case in ${share.of}`
}

function declare(cases: readonly ConformanceCase[]): void {
  for (const { title, skip, run } of cases) {
    if (skip === undefined) it(title, run, LIMIT_MS)
    else it.skip(`${title} (${skip})`)
  }
}
