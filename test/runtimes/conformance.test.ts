import { describe, expect, it } from 'vitest'
import { missingRuntime, RUNTIMES, versionOf } from '../../scripts/runtimes.mjs'
import { addRun, RUNTIME_NAMES } from '../../scripts/tables.mjs'
import { serverAvailability } from '../servers/availability.js'
import { runPlan } from './plan.js'
import { PLACES, type Place, planOf } from './stores.js'

type RuntimeName = keyof typeof RUNTIMES

const isWanted = process.env['HOLDFAST_TEST_TABLE'] === 'runtimes'
const LIMIT_MS = 1_500_000

// What works where: npm run test:runtimes writes the outcome into the table of docs/runtimes.md.
for (const place of PLACES)
  describe(`the conformance suite, on ${place.title}`, () => {
    for (const name of RUNTIME_NAMES as RuntimeName[]) {
      const missing = missingRuntime(name) ?? (place.needs ? serverAvailability(place.needs) : null)
      const reason = isWanted ? missing : 'npm run test:runtimes runs it'
      const title = `with ${name}`
      it.skipIf(reason !== null)(
        reason ? `${title} (skipped: ${reason})` : title,
        { timeout: LIMIT_MS },
        () => runOn(place, name),
      )
    }
  })

async function runOn(place: Place, name: RuntimeName): Promise<void> {
  const servers = await place.start()
  try {
    const { skipped, ...outcome } = await runPlan(planOf(place, servers), RUNTIMES[name])
    const left = Object.values(skipped).reduce((sum, count) => sum + count, 0)
    const date = new Date().toISOString().slice(0, 10)
    addRun('runtimes', { on: name, version: versionOf(name), store: place.title, date, ...outcome, left })
    expect(outcome.failed).toEqual([])
  } finally {
    await servers.stop()
  }
}
