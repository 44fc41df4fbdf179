// npm run test:docs: builds the documentation site, checks it, and opens it in Chromium.
import { ensureBuilt, runNode } from './ensure.mjs'
import { ensureServers } from './servers.mjs'

process.exitCode = (await runNode(['scripts/docs.mjs'])) || (await test())

async function test() {
  ensureBuilt()
  await ensureServers()
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    'test/site',
    'test/project/site',
    ...process.argv.slice(2),
  ]
  return runNode(args, { env: { ...process.env, HOLDFAST_TEST_DOCS: 'built' } })
}
