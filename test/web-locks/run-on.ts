import { describe, it } from 'vitest'
import { allSuites, type Declare, type Site } from './site.js'
import './cases/clients.js'
import './cases/loss.js'
import './cases/modes.js'
import './cases/names.js'
import './cases/order.js'
import './cases/processes.js'
import './cases/query.js'
import './cases/request.js'
import './cases/signal.js'
import './cases/steal.js'

/** `npm run test:all`: every case on every store. */
const isAll = process.env['HOLDFAST_TEST_ALL'] === '1'
/** Only ends what hangs. The long runs have many rounds. */
const LIMIT_MS = 180_000 * Math.max(1, Number(process.env['HOLDFAST_ORDER_ROUNDS'] ?? 0))

/** Declares every case, or each so-many-th: the server stores share what the suite has time for. */
export function runOn(kind: string, newSite: () => Site, { part = 0, of = 1 } = {}): void {
  let index = 0
  for (const { title, tests, needsProcesses = false } of allSuites()) {
    if (needsProcesses && kind === 'memory') continue
    const cases: Parameters<Declare>[] = []
    tests(newSite, (...each) => {
      if (isAll || index++ % of === part) cases.push(each)
    })
    // An empty suite is taken for a mistake.
    if (cases.length === 0) continue
    describe(`${title} (${kind})`, () => {
      for (const [name, run] of cases) it(name, run, LIMIT_MS)
    })
  }
}
