// npm test: the whole suite, from a fresh clone. Arguments go to vitest: `npm test -- test/engine`.
// The last line says how many tests passed and failed.
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ensureBuilt, ensureInstalled, root, runNode } from './ensure.mjs'

ensureInstalled()
ensureBuilt()

const report = join(root, '.cache/test-report.json')
mkdirSync(join(root, '.cache'), { recursive: true })
rmSync(report, { force: true })
const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
const exitCode = await runNode([
  'node_modules/vitest/vitest.mjs',
  'run',
  ...reporters,
  ...process.argv.slice(2),
])
process.exitCode = tell(exitCode)

function tell(code) {
  try {
    const {
      numPassedTests: passed,
      numFailedTests: failed,
      numPendingTests: skipped,
    } = JSON.parse(readFileSync(report, 'utf8'))
    console.log(`\n${passed} passed, ${failed} failed, ${skipped} skipped`)
    // A run that executed nothing has shown nothing.
    return code === 0 && passed === 0 ? 1 : code
  } catch {
    console.log('\n0 passed, 1 failed')
    return code || 1
  }
}
