// npm run test:faults: the fault runs on real servers, with more rounds and longer stalls than in the suite. Takes about half an hour.
import { ensureBuilt, ensureInstalled, runNode } from './ensure.mjs'
import { ensureServers } from './servers.mjs'

ensureInstalled()
ensureBuilt()
for (const { name, explanation } of await ensureServers())
  console.log(`Skipping the tests on ${name}: ${explanation}`)
const env = { HOLDFAST_FAULT_ROUNDS: '10', HOLDFAST_FAULT_STALL_MS: '10000', ...process.env }
const stdio = ['inherit', 'inherit', 'inherit', 'ipc']
const args = ['node_modules/vitest/vitest.mjs', 'run', 'redis-faults', ...process.argv.slice(2)]
process.exitCode = await runNode(args, { env, stdio })
