// A process that takes one lock again and again: `node zookeeper-holder.mjs URL RESOURCE`. Tells of
// each hold when it has it, and afterwards from when to when it was surely believed in, on the
// machine's monotonic clock. Ends when told to.
import { setTimeout as wait } from 'node:timers/promises'
import { Holdfast } from 'holdfast'

const [url = '', resource = ''] = process.argv.slice(2)
const LONGEST_MS = 30
const locks = await Holdfast.open(url)
let isOver = false
process.once('message', () => {
  isOver = true
})

while (!isOver) {
  try {
    await work(await locks.mutex(resource).acquire())
  } catch (error) {
    if (error.code !== 'STORE_UNAVAILABLE') throw error
  }
}
await locks.close()
process.disconnect()

async function work(hold) {
  const from = now()
  process.send({ type: 'held', fence: hold.fence })
  const until = from + Math.random() * LONGEST_MS
  let to = from
  while (now() < until || to === from) {
    await wait(1)
    const at = now()
    if (!hold.isValid) break
    to = at
  }
  const lostAt = hold.isValid ? null : now()
  process.send({ type: 'over', fence: hold.fence, from, to, lostAt, isTold: hold.signal.aborted })
  if (hold.isValid) await hold.release()
}

function now() {
  return Number(process.hrtime.bigint()) / 1e6
}
