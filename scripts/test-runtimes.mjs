// npm run test:runtimes: the processes of the SQLite store's tests on Bun, on Deno, and on one file
// all together with Node.
import { execFileSync } from 'node:child_process'
import { ensureBuilt, ensureInstalled, runNode } from './ensure.mjs'
import { ensureRuntimes, RUNTIMES } from './runtimes.mjs'

ensureInstalled()
ensureBuilt()
ensureRuntimes()
const outcomes = [await run('test/stores/sqlite-runtimes.test.ts', 'node')]
for (const names of ['bun', 'deno', 'node,bun,deno'])
  outcomes.push(await run('test/stores/sqlite-processes.test.ts', names))
for (const { title, code } of outcomes) console.log(`${title}: ${code === 0 ? 'passed' : 'FAILED'}`)
process.exitCode = outcomes.every(({ code }) => code === 0) ? 0 : 1

async function run(file, names) {
  const versions = names.split(',').map((name) => `${name} ${versionOf(RUNTIMES[name].execPath)}`)
  const title = `${file} on ${versions.join(', ')}`
  console.log(`\n=== ${title}`)
  const env = { ...process.env, HOLDFAST_TEST_RUNTIMES: names }
  return { title, code: await runNode(['node_modules/vitest/vitest.mjs', 'run', file], { env }) }
}

function versionOf(path) {
  return /\d+\.\d+\.\d+/.exec(execFileSync(path, ['--version']).toString())[0]
}
