// npm test: the whole suite, from a fresh clone. Arguments go to vitest: `npm test -- test/engine`.
// It says which servers it cannot have, at the beginning and at the end. The last line says how many tests passed and failed.
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ensureBuilt, ensureInstalled, root, runNode } from './ensure.mjs'
import { ensureServers } from './servers.mjs'

ensureInstalled()
ensureBuilt()
const absent = await ensureServers()
for (const { text } of absent) console.log(text)

const report = join(root, `.cache/test-report-${process.pid}.json`)
mkdirSync(join(root, '.cache'), { recursive: true })
rmSync(report, { force: true })
const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
// vitest ends when the channel to us closes: see test/servers/end-with-run.ts.
const stdio = ['inherit', 'inherit', 'inherit', 'ipc']
const args = ['node_modules/vitest/vitest.mjs', 'run', ...reporters, ...process.argv.slice(2)]
process.exitCode = tell(await runNode(args, { stdio }))

function tell(code) {
  try {
    const { numPassedTests, numFailedTests, numPendingTests, testResults } = JSON.parse(
      readFileSync(report, 'utf8'),
    )
    rmSync(report)
    for (const server of absent)
      console.log(`\n${countOf(server, testResults)} skipped tests: ${server.text}`)
    console.log(`\n${numPassedTests} passed, ${numFailedTests} failed, ${numPendingTests} skipped`)
    // A run that executed nothing has shown nothing.
    return code === 0 && numPassedTests === 0 ? 1 : code
  } catch {
    console.log('\n0 passed, 1 failed')
    return code || 1
  }
}

/** How many tests were skipped for want of a server: their titles say so. */
function countOf({ reason }, files) {
  return files
    .flatMap((file) => file.assertionResults)
    .filter(({ status, fullName }) => status !== 'passed' && fullName.includes(`skipped: ${reason}`)).length
}
