// npm run bench [-- NAME …] [--node PATH]: benchmarks beside their peers in the same run, as
// ratios.
import { parseArgs } from 'node:util'
import { ensureBuilt, ensureInstalled, runNode } from './ensure.mjs'

ensureInstalled()
ensureBuilt()
const { values } = parseArgs({ options: { node: { type: 'string' } }, strict: false })
process.exitCode = await runNode(['bench/main.mjs', ...process.argv.slice(2)], { node: values.node })
