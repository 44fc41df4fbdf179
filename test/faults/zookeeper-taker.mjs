// A process that takes locks again and again: `node zookeeper-taker.mjs URL LOCKS`. Tells of each
// hold from when to when it was surely valid, on the clock that all processes of this machine
// share. Ends when told to.
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { Holdfast } from 'holdfast'

const [url = '', lockCount = ''] = process.argv.slice(2)
/** Shorter than most faults last, and longer. */
const LEASES_MS = [400, 700, 1200, 3000]
/**
 * Half of them are over at once. The others last, so that a fault or its clean-up happens while
 * they do.
 */
const LONGEST_MS = 200
const LONG_SHARE = 0.5
const REPORT_MS = 100
const EXPECTED = ['STORE_UNAVAILABLE', 'ACQUIRE_TIMEOUT']

const locks = await Holdfast.open(url, { storeTimeout: '5s' })
let isOver = false
let holds = []
process.once('message', () => {
  isOver = true
})
// Also where the run was ended from outside.
process.once('disconnect', () => process.exit())
const reporting = setInterval(report, REPORT_MS)
await Promise.all(Array.from({ length: Number(lockCount) }, (_, lock) => take(lock)))
clearInterval(reporting)
report()
await locks.close()
process.disconnect()

function report() {
  if (holds.length > 0) process.send(holds)
  holds = []
}

async function take(lock) {
  while (!isOver) {
    try {
      const lease = LEASES_MS[Math.floor(Math.random() * LEASES_MS.length)]
      await work(await locks.mutex(`lock-${lock}`).acquire({ lease }), lock)
    } catch (error) {
      if (!EXPECTED.includes(error.code)) throw error
      await wait(10)
    }
  }
}

async function work(hold, lock) {
  const from = now()
  const until = Math.random() < LONG_SHARE ? from + Math.random() * LONGEST_MS : from
  let to = null
  do {
    await (until > from ? wait(1) : turn())
    // In this order: a pause in between makes the hold end earlier.
    const at = now()
    if (!hold.isValid) break
    to = at
  } while (now() < until)
  if (to !== null) holds.push([lock, hold.fence, from, to])
  await hold.release()
}

function now() {
  return Number(process.hrtime.bigint()) / 1e6
}
