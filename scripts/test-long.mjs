// npm run test:long: the generated and simulated runs, many more of them than in the suite. A failure prints its seed.
import { ensureBuilt, ensureInstalled, runNode } from './ensure.mjs'

ensureInstalled()
ensureBuilt()
const env = { HOLDFAST_SEEDS: '5000', HOLDFAST_RUNS: '20000', ...process.env }
const files = [
  'test/engine/simulation.test.ts',
  'test/engine/cohort-simulation.test.ts',
  'test/engine/heirs-simulation.test.ts',
  'test/engine/arrival.test.ts',
  'test/contract/histories.test.ts',
  'test/stores/sqlite-histories.test.ts',
]
process.exitCode = await runNode(
  ['node_modules/vitest/vitest.mjs', 'run', ...files, '--testTimeout=7200000'],
  { env },
)
