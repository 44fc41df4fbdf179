// npm run test:nodes [-- VERSION …]: the suite on the embedded stores, on each Node that we
// support. The interpreters come from the npm registry into .cache/nodes, so nothing on the machine
// changes.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureBuilt, ensureInstalled, root, runNode } from './ensure.mjs'

const versions = process.argv.slice(2).length > 0 ? process.argv.slice(2) : ['20', '22', '24', '26']
ensureInstalled()
ensureBuilt()

const outcomes = []
for (const version of versions) {
  const node = install(version)
  const exact = execFileSync(node, ['--version']).toString().trim()
  console.log(`\n=== Node ${exact}`)
  const env = { ...process.env, PATH: `${join(node, '..')}:${process.env.PATH}` }
  const code = await runNode(['node_modules/vitest/vitest.mjs', 'run', '--reporter=dot'], { node, env })
  outcomes.push({ exact, code })
}
for (const { exact, code } of outcomes) console.log(`Node ${exact}: ${code === 0 ? 'passed' : 'FAILED'}`)
process.exitCode = outcomes.every(({ code }) => code === 0) ? 0 : 1

function install(version) {
  const folder = join(root, '.cache/nodes', version)
  const node = join(folder, 'node_modules/node/bin/node')
  if (existsSync(node)) return node
  console.log(`Installing Node ${version} from the npm registry …`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  execFileSync('npm', ['install', `node@${version}`, '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: 'inherit',
  })
  return node
}
