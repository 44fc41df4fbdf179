// npm run test:pauses: the suite, while each of its processes stands still at random moments. What
// fails here fails some day on a busy machine. A part of it:
// `npm run test:pauses -- test/stores/redis`. Takes about as long as the suite. Cases that make
// very many calls are left out: pauses only make them long.
import { fileURLToPath } from 'node:url'
import { ensureBuilt, ensureInstalled, runNode } from './ensure.mjs'
import { ensureServers } from './servers.mjs'

ensureInstalled()
ensureBuilt()
for (const { name, explanation } of await ensureServers())
  console.log(`Skipping the tests on ${name}: ${explanation}`)
const preload = fileURLToPath(new URL('stand-still.mjs', import.meta.url))
const env = {
  HOLDFAST_PAUSES_CHANCE: '0.015',
  HOLDFAST_PAUSES_MS: '15',
  HOLDFAST_PAUSES_LONGEST_MS: '400',
  ...process.env,
  NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import ${preload}`,
}
const limits = ['--testTimeout=180000']
const few = ['-t', '^(?!.*(100,000 holds|10000 waiters|many names pass)).*$']
const stdio = ['inherit', 'inherit', 'inherit', 'ipc']
const args = ['node_modules/vitest/vitest.mjs', 'run', ...limits, ...few, ...process.argv.slice(2)]
process.exitCode = await runNode(args, { env, stdio })
