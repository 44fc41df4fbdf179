// npm run test:repeat -- [--runs 10] [--busy 2]: the suite again and again, beside so many loops
// that only compute. A test that fails in one of them is not reliable. One line for each run; what it
// printed is in .cache/test-repeat. Takes a quarter of an hour or more for each.
import { spawn } from 'node:child_process'
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { root } from './ensure.mjs'

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '10' }, busy: { type: 'string', default: '2' } },
})
const [runs, busy] = [values.runs, values.busy].map(Number)
if (!(runs > 0 && busy >= 0)) {
  console.error('Usage: npm run test:repeat -- [--runs 10] [--busy 2]')
  process.exit(2)
}
const folder = join(root, '.cache/test-repeat')
mkdirSync(folder, { recursive: true })
// Threads end with this process, however it ends.
for (let count = 0; count < busy; count++) new Worker('for (;;);', { eval: true })
console.log(`${runs} runs beside ${busy} busy loops; their output is in ${folder}`)
let failures = 0
for (let run = 1; run <= runs; run++) {
  const file = join(folder, `${run}.txt`)
  const startedAt = Date.now()
  const code = await suite(file)
  if (code !== 0) failures++
  const minutes = ((Date.now() - startedAt) / 60_000).toFixed(1)
  console.log(`${run}: ${code === 0 ? 'passed' : 'FAILED'} in ${minutes} min; ${verdictOf(file)}`)
}
console.log(`${runs - failures} passed, ${failures} failed`)
process.exit(failures === 0 ? 0 : 1)

function suite(file) {
  return new Promise((resolve) => {
    const output = createWriteStream(file)
    const child = spawn(process.execPath, [join(root, 'scripts/test.mjs')], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr]) stream.pipe(output, { end: false })
    child.once('close', (code) => output.end(() => resolve(code ?? 1)))
  })
}

/** The suite's own count, and how many tests it ran again. */
function verdictOf(file) {
  const lines = readFileSync(file, 'utf8').split('\n')
  const count = lines.findLast((line) => /^\d+ passed, \d+ failed/.test(line)) ?? 'no count'
  const again = lines.find((line) => line.startsWith('Run again'))?.match(/\d+(?= tests)/)?.[0] ?? '0'
  return `${count}; ${again} run again`
}
