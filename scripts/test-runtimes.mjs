// npm run test:runtimes: the conformance suite on Node 20, 22, 24 and 26, Bun and Deno, on each
// store; the outcome is the table of docs/runtimes.md. Then the processes of the SQLite store's tests
// on Bun, on Deno, and on one file all together with Node. Servers that are slow get a share of the
// cases; with --all they get all. A part of it: `npm run test:runtimes -- -t 'SQLite.*Bun'`.
import { ensureBuilt, ensureInstalled } from './ensure.mjs'
import { runTests } from './run-tests.mjs'
import { ensureRuntimes, versionOf } from './runtimes.mjs'
import { ensureServers } from './servers.mjs'
import { RUNTIME_NAMES, readRuns } from './tables.mjs'

const given = process.argv.slice(2).filter((argument) => argument !== '--all')
const isAll = given.length < process.argv.length - 2
ensureInstalled()
ensureBuilt()
await ensureServers()
ensureRuntimes(['bun', 'deno', ...RUNTIME_NAMES])

const before = JSON.stringify(readRuns('runtimes'))
const outcomes = [
  await run('the conformance suite on every runtime', 'test/runtimes/conformance.test.ts', {
    HOLDFAST_TEST_TABLE: 'runtimes',
    ...(isAll ? { HOLDFAST_TEST_ALL: '1' } : {}),
  }),
]
if (JSON.stringify(readRuns('runtimes')) === before) console.log('The table has not changed.')
if (given.length === 0) {
  outcomes.push(await run('processes of different runtimes', 'test/stores/sqlite-runtimes.test.ts', {}))
  for (const names of ['bun', 'deno', 'node,bun,deno']) {
    const title = names.split(',').map((name) => `${name} ${versionOf(name)}`)
    const env = { HOLDFAST_TEST_RUNTIMES: names }
    outcomes.push(await run(title.join(', '), 'test/stores/sqlite-processes.test.ts', env))
  }
}
for (const { title, code } of outcomes) console.log(`${title}: ${code === 0 ? 'passed' : 'FAILED'}`)
process.exitCode = outcomes.every(({ code }) => code === 0) ? 0 : 1

async function run(title, file, env) {
  console.log(`\n=== ${title}: ${file}`)
  return { title, code: await runTests([file], { given, env, example: "-t 'Redis with Bun'" }) }
}
