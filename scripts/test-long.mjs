// npm run test:long: the generated and simulated runs, many more of them than in the suite. A
// failure prints its seed. npm run test:long -- --worlds 100000 [--seed FIRST] [--jobs N] [--node
// PATH] [--quorum] [--report]: only simulated worlds, in several processes, with one server or a
// quorum. --report adds the run to docs/proof/worlds.md.
import { parseArgs } from 'node:util'
import { ensureBuilt, ensureInstalled, runNode } from './ensure.mjs'
import { runWorlds } from './worlds.mjs'

const { values } = parseArgs({
  options: {
    worlds: { type: 'string' },
    seed: { type: 'string', default: '1' },
    jobs: { type: 'string' },
    node: { type: 'string' },
    quorum: { type: 'boolean' },
    report: { type: 'boolean' },
  },
})
ensureInstalled()
ensureBuilt()
process.exitCode = values.worlds === undefined ? await runSuites() : await runWorlds(values)

function runSuites() {
  const env = { HOLDFAST_SEEDS: '5000', HOLDFAST_RUNS: '20000', ...process.env }
  const files = [
    'test/engine/simulation.test.ts',
    'test/engine/cohort-simulation.test.ts',
    'test/engine/heirs-simulation.test.ts',
    'test/engine/mixed-simulation.test.ts',
    'test/engine/arrival.test.ts',
    'test/stores/quorum-simulation.test.ts',
    'test/stores/quorum-states.test.ts',
    'test/contract/histories.test.ts',
    'test/stores/sqlite-histories.test.ts',
  ]
  return runNode(['node_modules/vitest/vitest.mjs', 'run', ...files, '--testTimeout=7200000'], { env })
}
