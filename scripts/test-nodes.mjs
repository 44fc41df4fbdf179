// npm run test:nodes [-- VERSION …]: the suite on the embedded stores, on each Node that we
// support. The interpreters come from the npm registry: see runtimes.mjs.
import { join } from 'node:path'
import { ensureBuilt, ensureInstalled, runNode } from './ensure.mjs'
import { ensureRuntimes, RUNTIMES, versionOf } from './runtimes.mjs'

const versions = process.argv.slice(2).length > 0 ? process.argv.slice(2) : ['20', '22', '24', '26']
ensureInstalled()
ensureBuilt()

const outcomes = []
for (const version of versions) {
  const name = `Node ${version}`
  if (!(name in RUNTIMES)) throw new Error(`no ${name} in scripts/runtimes.mjs`)
  ensureRuntimes([name])
  const { execPath: node } = RUNTIMES[name]
  const exact = versionOf(name)
  console.log(`\n=== Node ${exact}`)
  const env = { ...process.env, PATH: `${join(node, '..')}:${process.env.PATH}` }
  const code = await runNode(['node_modules/vitest/vitest.mjs', 'run', '--reporter=dot'], { node, env })
  outcomes.push({ exact, code })
}
for (const { exact, code } of outcomes) console.log(`Node ${exact}: ${code === 0 ? 'passed' : 'FAILED'}`)
process.exitCode = outcomes.every(({ code }) => code === 0) ? 0 : 1
