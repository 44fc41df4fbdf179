import { describe, expect, it } from 'vitest'
import { RUNTIMES } from '../../scripts/runtimes.mjs'
import { addRun } from '../../scripts/tables.mjs'
import { runPlan } from './plan.js'
import { SERVER_VERSIONS } from './server-versions.js'
import { PLACES, planOf } from './stores.js'

const isWanted = process.env['HOLDFAST_TEST_TABLE'] === 'servers'
const LIMIT_MS = 1_500_000

// What works where: npm run test:servers writes the outcome into the table of docs/runtimes.md.
describe('the conformance suite', () => {
  for (const { name, from, store, missing, version, start } of SERVER_VERSIONS) {
    const reason = isWanted ? missing : 'npm run test:servers runs it'
    const title = `on ${name} of ${from}`
    it.skipIf(reason !== null)(
      reason ? `${title} (skipped: ${reason})` : title,
      { timeout: LIMIT_MS },
      async () => {
        const place = PLACES.find((each) => each.store === store)
        if (!place) throw new Error(`no place for ${store}`)
        const server = await start()
        try {
          const plan = planOf(place, { urls: [server.url] })
          const { skipped, ...outcome } = await runPlan(plan, RUNTIMES['node'])
          const left = Object.values(skipped).reduce((sum, count) => sum + count, 0)
          const date = new Date().toISOString().slice(0, 10)
          addRun('servers', { on: name, version: await version(), store: from, date, ...outcome, left })
          expect(outcome.failed).toEqual([])
        } finally {
          await server.stop()
        }
      },
    )
  }
})
