// vitest with files and arguments, for the runs beside `npm test`. A run that executed nothing has
// shown nothing, so it fails: a filter may be misspelled, or a server missing.
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root, runNode } from './ensure.mjs'

let runs = 0

/**
 * Resolves with the exit code. `given`: what the caller of the script added. `example`: a filter
 * that matches something.
 */
export async function runTests(files, { given = [], env = {}, example }) {
  const report = join(root, `.cache/test-report-${process.pid}-${++runs}.json`)
  mkdirSync(join(root, '.cache'), { recursive: true })
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...files, ...reporters, ...given]
  const code = await runNode(args, { env: { ...process.env, ...env } })
  if (executedIn(report) > 0 || code !== 0) return code
  const filter = given.length === 0 ? '' : ` with ${given.join(' ')}`
  console.error(`\nNo test was run${filter}: nothing matches, or what matches was skipped.`)
  console.error(`A filter is a part of a title, for example: ${example}`)
  return 1
}

/** How many tests passed or failed. */
function executedIn(report) {
  try {
    const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, 'utf8'))
    rmSync(report)
    return numPassedTests + numFailedTests
  } catch {
    return 0
  }
}
