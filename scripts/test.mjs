// npm test: the suite, from a fresh clone. Arguments go to vitest: `npm test -- test/engine`. With
// --all (npm run test:all), every case of the conformance suite runs on every store through every
// client; otherwise the clients of one store share them. It says which servers, peers and older
// version it cannot have, at the beginning and at the end. The last line says how many tests passed and failed.
import { existsSync, mkdirSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { ensureBuilt, ensureInstalled, root, runNode } from './ensure.mjs'
import { ensurePeers } from './peers.mjs'
import { ensurePorcupine } from './porcupine.mjs'
import { ensurePrevious } from './previous.mjs'
import { ensureServers } from './servers.mjs'

ensureInstalled()
ensureBuilt()
const judges = [ensurePorcupine()].filter((missing) => missing !== null)
const absent = [...(await ensureServers()), ...ensurePeers(), ...judges, ...ensurePrevious()]
for (const { name, explanation } of absent) console.log(`Skipping the tests on ${name}: ${explanation}`)

const report = join(root, `.cache/test-report-${process.pid}.json`)
mkdirSync(join(root, '.cache'), { recursive: true })
rmSync(report, { force: true })
/** A line for each verdict that did not count: see test/servers/void-verdicts.ts. */
const voidVerdicts = join(root, `.cache/test-void-${process.pid}.txt`)
const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
// vitest ends when the channel to us closes: see test/servers/end-with-run.ts.
const stdio = ['inherit', 'inherit', 'inherit', 'ipc']
const given = process.argv.slice(2).filter((argument) => argument !== '--all')
const isAll = given.length < process.argv.length - 2
const args = ['node_modules/vitest/vitest.mjs', 'run', ...reporters, ...given]
const chosen = isAll ? { HOLDFAST_TEST_ALL: '1' } : {}
const env = { ...memoryFolder(), ...process.env, ...chosen, HOLDFAST_TEST_VOID: voidVerdicts }
process.exitCode = tell(await runNode(args, { stdio, env }))

/**
 * Where the temporary files of the tests go: into memory, if there is much of it. A disk that
 * others write to can stand still for seconds, and the tests are to judge the locks and not the
 * disk. Libraries are loaded from there, too.
 */
function memoryFolder() {
  const folder = '/dev/shm'
  try {
    const { bavail, bsize } = statfsSync(folder)
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find((line) => line.split(' ')[1] === folder)
    const isFit = bavail * bsize > 8 * 2 ** 30 && mount && !/\bnoexec\b/.test(mount)
    return isFit ? { TMPDIR: folder } : {}
  } catch {
    return {}
  }
}

function tell(code) {
  try {
    const { numPassedTests, numFailedTests, numPendingTests, testResults } = JSON.parse(
      readFileSync(report, 'utf8'),
    )
    rmSync(report)
    for (const { name, reason, explanation } of absent)
      console.log(`\nSkipped ${countOf(reason, testResults)} tests on ${name}: ${explanation}`)
    tellVoid()
    if (code !== 0 && numFailedTests === 0)
      console.log('\nAn error outside of any test failed the run: see above.')
    console.log(`\n${numPassedTests} passed, ${numFailedTests} failed, ${numPendingTests} skipped`)
    // A run that executed nothing has shown nothing.
    return code === 0 && numPassedTests === 0 ? 1 : code
  } catch {
    console.log('\n0 passed, 1 failed')
    return code || 1
  }
}

function tellVoid() {
  if (!existsSync(voidVerdicts)) return
  const lines = readFileSync(voidVerdicts, 'utf8').trim().split('\n')
  rmSync(voidVerdicts)
  console.log(`\nRun again, as the machine stood still for more than a second: ${lines.length} tests`)
  for (const line of lines) console.log(`  ${line}`)
}

/** How many tests were skipped because a server is missing: their titles say so. */
function countOf(reason, files) {
  return files
    .flatMap((file) => file.assertionResults)
    .filter(({ status, fullName }) => status !== 'passed' && fullName.includes(`skipped: ${reason}`)).length
}
