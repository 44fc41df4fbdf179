import { describe, it } from 'vitest'
import { type ConformanceCase, type ConformanceSubject, conformanceCases } from '../../src/testing/index.js'

const LIMIT_MS = 90_000

/** Declares every case; those that do not mind company run side by side. */
export function runCases(subject: ConformanceSubject): void {
  const cases = conformanceCases(subject)
  describe.concurrent(subject.name, () => declare(cases.filter((each) => !each.alone)))
  describe.sequential(`${subject.name}, one at a time`, () => declare(cases.filter((each) => each.alone)))
}

function declare(cases: readonly ConformanceCase[]): void {
  for (const { title, skip, run } of cases) {
    if (skip === undefined) it(title, run, LIMIT_MS)
    else it.skip(`${title} (${skip})`)
  }
}
