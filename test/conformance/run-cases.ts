import { describe, it } from 'vitest'
import { type ConformanceCase, type ConformanceSubject, conformanceCases } from '../../src/testing/index.js'

const LIMIT_MS = 90_000

/** Declares every case; those that do not mind company run side by side. `skips`: by title, why a case is not for this store. */
export function runCases(subject: ConformanceSubject, skips: Readonly<Record<string, string>> = {}): void {
  const cases = conformanceCases(subject).map((each) => {
    const skip = skips[each.title]
    return skip === undefined ? each : { ...each, skip }
  })
  describe.concurrent(subject.name, () => declare(cases.filter((each) => !each.alone)))
  describe.sequential(`${subject.name}, one at a time`, () => declare(cases.filter((each) => each.alone)))
}

function declare(cases: readonly ConformanceCase[]): void {
  for (const { title, skip, run } of cases) {
    if (skip === undefined) it(title, run, LIMIT_MS)
    else it.skip(`${title} (${skip})`)
  }
}
