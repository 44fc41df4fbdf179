// npm run bench [-- NAME …]: benchmarks beside their peers in the same run, as ratios.
import { ensureBuilt, ensureInstalled, runNode } from './ensure.mjs'

ensureInstalled()
ensureBuilt()
process.exitCode = await runNode(['bench/main.mjs', ...process.argv.slice(2)])
