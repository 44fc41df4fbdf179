/** A process that takes the lock, prepares a write, is held up, and then writes without asking whether it still may. */
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { Holdfast } from 'holdfast'
import { goHome } from './at-work.mjs'

const { store, name, lease } = JSON.parse(process.argv[2] ?? '{}')

/** @param {Record<string, unknown>} message */
const tell = (message) => process.send?.(message)
const told = () => once(process, 'message')

const locks = await Holdfast.open(store)
const hold = await locks.mutex(name).acquire({ lease, wait: '20s' })
tell({ event: 'granted', fence: hold.fence })
const write = { fence: hold.fence, content: `written by process ${process.pid}` }

// Time for the store to finish what belongs to the acquisition: stopped in the middle of a transaction of SQLite, this process
// would lock the whole file, for everybody.
await wait(200)

// Whatever takes long: a calculation, a garbage collection, a laptop that is closed, a virtual machine that is moved.
const goOn = told()
tell({ event: 'ready' })
await goOn

// The first thing after waking up: does the hold know? (A careful program would stop here. This one does not.)
tell({ event: 'woke', isValid: hold.isValid })
const answer = told()
tell({ event: 'write', ...write })
await answer

await hold.release() // of a lost hold: touches nobody else's
await locks.close()
goHome()
