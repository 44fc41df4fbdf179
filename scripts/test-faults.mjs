// npm run test:faults: the fault runs on real servers, with more rounds and longer stalls than in
// the suite. Takes one to two hours; a part of them: `npm run test:faults -- -t ZooKeeper`.
import { ensureBuilt, ensureInstalled, runNode } from './ensure.mjs'
import { ensureServers } from './servers.mjs'

ensureInstalled()
ensureBuilt()
for (const { name, explanation } of await ensureServers())
  console.log(`Skipping the tests on ${name}: ${explanation}`)
const env = {
  HOLDFAST_FAULT_ROUNDS: '10',
  HOLDFAST_FAULT_STALL_MS: '10000',
  HOLDFAST_FAULT_RESOURCES: '1000000',
  HOLDFAST_FAULT_GRANTS: '200000',
  HOLDFAST_FAULT_QUORUM_GRANTS: '100000',
  ...process.env,
}
const stdio = ['inherit', 'inherit', 'inherit', 'ipc']
const stores = ['redis', 'zookeeper', 'postgres', 'mysql', 'etcd', 'memcached', 'quorum']
const files = stores.map((store) => `stores/${store}-faults`)
const args = ['node_modules/vitest/vitest.mjs', 'run', ...files, ...process.argv.slice(2)]
process.exitCode = await runNode(args, { env, stdio })
