// A process that takes locks again and again, and counts up a number of each under its fence: `node
// quorum-taker.mjs JSON`, see `Task` in quorum-takers.ts. The numbers are in the parent, which asks
// a guard before it reads or writes one. Tells of each hold from when to when it was surely valid,
// on the clock that all processes of this machine share. Ends when told to.
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { Holdfast } from 'holdfast'
import { mysql } from 'holdfast/mysql'
import { postgres } from 'holdfast/postgres'
import { quorum } from 'holdfast/quorum'
import { redis } from 'holdfast/redis'
import { sqlite } from 'holdfast/sqlite'
import { membersOf } from '../stores/quorum/members.mjs'

const { urls, options, quickLocks, longLocks, leaseMs } = JSON.parse(process.argv[2] ?? '{}')
/** Half of the quick holds are over at once. */
const LONGEST_QUICK_MS = 10
/** A long one is renewed several times. */
const LONGEST_LONG_LEASES = 1.5
const REPORT_MS = 50
/** A lease that ended at the time of its release says so. */
const EXPECTED = ['STORE_UNAVAILABLE', 'ACQUIRE_TIMEOUT', 'LOCK_LOST']

const members = membersOf(urls, { redis, postgres, mysql, sqlite }, 3)
const locks = new Holdfast(quorum(members, options), { storeTimeout: '5s' })
let isOver = false
let report = { holds: [], wronglyRefused: [], failures: 0 }
const asked = new Map()
let lastAsked = 0
process.on('message', (message) => {
  if (message === 'end') isOver = true
  else asked.get(message.ask)?.(message)
})
// Also where the run was ended from outside.
process.once('disconnect', () => process.exit())
const reporting = setInterval(send, REPORT_MS)
const all = Array.from({ length: quickLocks + longLocks }, (_, lock) => take(lock))
await Promise.all(all)
clearInterval(reporting)
await locks.close()
send(() => process.disconnect())

function send(then) {
  process.send(report, typeof then === 'function' ? then : undefined)
  report = { holds: [], wronglyRefused: [], failures: 0 }
}

async function take(lock) {
  while (!isOver) {
    try {
      await work(await locks.mutex(`lock-${lock}`).acquire({ lease: leaseMs }), lock)
    } catch (error) {
      if (!EXPECTED.includes(error.code)) throw error
      report.failures++
      await wait(10)
    }
  }
}

async function work(hold, lock) {
  const from = now()
  const isLong = lock >= quickLocks
  const longestMs = isLong ? LONGEST_LONG_LEASES * leaseMs : LONGEST_QUICK_MS
  const until = isLong || Math.random() < 0.5 ? from + Math.random() * longestMs : from
  let to = null
  const look = () => {
    // In this order: a pause in between makes the hold end earlier.
    const at = now()
    if (!hold.isValid) return false
    to = at
    return true
  }
  const { fence } = hold
  const before = await ask({ lock, fence, value: null })
  do await (until > from ? wait(1) : turn())
  while (look() && now() < until && !isOver)
  // Whether it is valid or not: the guard has the last word.
  const after = before.isRefused ? before : await ask({ lock, fence, value: before.value + 1 })
  if (look() && after.isRefused) report.wronglyRefused.push({ lock, fence, newest: after.newest })
  if (to !== null) report.holds.push([lock, fence, from, to])
  await hold.release()
}

/** Of the parent: reads the number of that lock, or writes it. */
function ask(question) {
  return new Promise((resolve) => {
    const id = ++lastAsked
    asked.set(id, (answer) => {
      asked.delete(id)
      resolve(answer)
    })
    process.send({ ask: id, ...question })
  })
}

function now() {
  return Number(process.hrtime.bigint()) / 1e6
}
