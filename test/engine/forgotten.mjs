// Forgets holds, collects the garbage, and tells which of them are left in the line.
import { Holdfast } from 'holdfast'
import { memory } from 'holdfast/memory'

const locks = new Holdfast(memory())
// Long enough for a machine that is busy.
const options = { lease: 3000 }
const kept = await locks.mutex('kept').acquire(options)
await locks.mutex('forgotten').acquire({ ...options, label: 'nightly' })
// As a program that is to run once does: it never looks at its hold again, but wants to hear of the
// loss.
;(await locks.mutex('watched').acquire(options)).signal.addEventListener('abort', () =>
  console.log('watched aborts'),
)
const election = locks.election('lost')
const leadership = new WeakRef(await election.campaign(options))
await locks.breakHold('election:lost')
const passed = await (await locks.mutex('passed').acquire(options)).export()
const next = locks.mutex('forgotten').acquire(options)
const run = locks.mutex('run').run(async () => {
  await next
  await new Promise((resolve) => setTimeout(resolve, 4000))
  return 'ran'
}, options)
const collecting = setInterval(() => globalThis.gc(), 20)
const later = await next
console.log(await run, later.isValid, kept.isValid, (await locks.adopt(passed)).isValid)
clearInterval(collecting)
console.log('watched is', (await locks.mutex('watched').isLocked()) ? 'held' : 'free')
console.log('a lost leadership is', leadership.deref() ? 'kept' : 'collected')
await later.release()
await kept.release()
await locks.close({ drain: 0 })
