// A process that simulates the world of each seed that it is sent, and answers with what happened
// in it.
import { simulate, simulateQuorum } from 'holdfast/testing'

const run = process.argv.includes('--quorum') ? simulateQuorum : simulate
/** Half of the worlds are mixed; the others have one kind of load, as in the suite. */
const KINDS = [
  { isMixed: true },
  {},
  { isMixed: true },
  { order: 'cohort', processes: 3, tasksPerProcess: 8 },
  { isMixed: true },
  { isHot: true, processes: 3, tasksPerProcess: 8 },
]
const usualDepth = Error.stackTraceLimit

// Ctrl+C in a terminal reaches this process, too. The one above ends it after its world.
process.on('SIGINT', () => {})

process.on('message', async (seed) => {
  const before = process.cpuUsage()
  const outcome = await outcomeOf({ seed, ...KINDS[seed % KINDS.length] })
  const { user, system } = process.cpuUsage(before)
  process.send({ ...outcome, cpuMs: (user + system) / 1000 })
})

async function outcomeOf(options) {
  // Timeouts are a part of every world, and nobody reads the stacks of their errors.
  Error.stackTraceLimit = 0
  try {
    return { tally: await run(options) }
  } catch {
    return { error: await explained(options) }
  }
}

/** The same history once more, for the stack. */
async function explained(options) {
  Error.stackTraceLimit = usualDepth
  try {
    await run(options)
    return 'it passed when it was run again, so that it does not depend on the seed alone'
  } catch (error) {
    const { cause } = error
    return `${error.message}\n${cause instanceof Error ? cause.stack : ''}`
  }
}
