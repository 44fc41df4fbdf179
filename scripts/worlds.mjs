// Runs simulated worlds in several processes, shows how far they are, and stops at failures.
import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { keepWorlds } from '../proof/worlds.mjs'

const WORKER = fileURLToPath(new URL('worlds-worker.mjs', import.meta.url))
const PROGRESS_EVERY_MS = 10_000
/** After so many failures further worlds tell nothing new. */
const MOST_FAILURES = 5
/** A world takes far less than a second. */
const HUNG_AFTER_MS = 300_000

/**
 * Gives the exit code. Values are those of the command line. After Ctrl+C no further world begins.
 */
export async function runWorlds(values) {
  const { worlds, seed, quorum = false, jobs = availableParallelism(), node = process.execPath } = values
  const run = new Run(Number(seed), Number(worlds), quorum ? ['--quorum'] : [])
  const progress = setInterval(() => run.tellProgress(), PROGRESS_EVERY_MS)
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => run.endSoon())
  try {
    await Promise.all(Array.from({ length: Math.min(Number(jobs), run.count) }, () => runWorker(run, node)))
  } finally {
    clearInterval(progress)
  }
  run.tellEnd()
  if (values.report) keepWorlds(run.kept(quorum ? 'a quorum' : 'one server'))
  return run.failures.length === 0 ? 0 : 1
}

/**
 * One process that runs world after world. A process that dies or hangs counts as a failure of its
 * world.
 */
async function runWorker(run, node) {
  for (let seed = run.nextSeed(); seed !== undefined; ) {
    const child = fork(WORKER, run.kind, { execPath: node })
    const isAlive = await new Promise((resolve) => {
      let hung
      const give = () => {
        clearTimeout(hung)
        if (seed === undefined) {
          child.disconnect()
          return resolve(true)
        }
        hung = setTimeout(() => child.kill('SIGKILL'), HUNG_AFTER_MS)
        child.send(seed)
      }
      child.on('message', (outcome) => {
        run.note(seed, outcome)
        seed = run.nextSeed()
        give()
      })
      child.on('exit', (code, signal) => {
        clearTimeout(hung)
        if (seed === undefined) return
        run.note(seed, { error: `its process ended with ${signal ?? code}`, cpuMs: 0 })
        resolve(false)
      })
      give()
    })
    if (isAlive) return
    seed = run.nextSeed()
  }
}

/** What has happened so far. */
class Run {
  failures = []
  #first
  #given = 0
  #done = 0
  #cpuMs = 0
  #sum = {}
  #isEnding = false
  #startedAt = performance.now()

  /** `kind`: the options that the worlds depend on, besides their seeds. */
  constructor(first, count, kind) {
    if (!Number.isSafeInteger(first) || !Number.isSafeInteger(count) || count < 1)
      throw new Error('--worlds and --seed take whole numbers: --worlds 100000 --seed 1')
    this.#first = first
    this.count = count
    this.kind = kind
  }

  /** undefined: there is nothing more to do. */
  nextSeed() {
    const isEnough = this.#given === this.count || this.failures.length >= MOST_FAILURES
    if (isEnough || this.#isEnding) return undefined
    return this.#first + this.#given++
  }

  endSoon() {
    this.#isEnding = true
  }

  /** What is worth keeping. All seeds that were given have been run. */
  kept(kind) {
    return { kind, first: this.#first, worlds: this.#done, failed: this.failures, sum: this.#sum }
  }

  note(seed, { tally = {}, error, cpuMs }) {
    this.#done++
    this.#cpuMs += cpuMs
    for (const [name, count] of Object.entries(tally)) this.#sum[name] = (this.#sum[name] ?? 0) + count
    if (error === undefined) return
    this.failures.push(seed)
    console.log(`\nThe world with seed ${seed} failed: ${error}`)
    console.log(`  Again: npm run test:long -- ${['--worlds 1', ...this.kind].join(' ')} --seed ${seed}`)
  }

  tellProgress() {
    const perSecond = this.#done / ((performance.now() - this.#startedAt) / 1000)
    const leftMinutes = Math.ceil((this.count - this.#done) / perSecond / 60)
    console.log(
      `${this.#done.toLocaleString('en')} of ${this.count.toLocaleString('en')} worlds, ${perSecond.toFixed(0)} per second, ${leftMinutes} min left, ${this.failures.length} failed`,
    )
  }

  tellEnd() {
    const minutes = (performance.now() - this.#startedAt) / 60_000
    const each = `${(this.#cpuMs / this.#done).toFixed(1)} ms of CPU each`
    console.log(
      `\n${this.#done.toLocaleString('en')} worlds in ${minutes.toFixed(1)} min, ${each}: ${JSON.stringify(this.#sum)}`,
    )
    console.log(`${this.#done - this.failures.length} passed, ${this.failures.length} failed`)
    if (this.failures.length > 0) console.log(`Seeds that failed: ${this.failures.join(', ')}`)
  }
}
