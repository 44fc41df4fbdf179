// Holds the Web Lock 'a' of a SQLite file for ever, and tells its parent when it has it and how its request ends.
import { Holdfast } from 'holdfast'
import { sqlite } from 'holdfast/sqlite'
import { LockManager } from 'holdfast/web-locks'

// A promise that nobody settles keeps no process alive.
process.channel.ref()
const locks = new LockManager(new Holdfast(sqlite(process.argv[2])), { lease: '2500ms' })
let signal
try {
  await locks.request('a', (lock) => {
    signal = lock.signal
    process.send('held')
    return new Promise(() => {})
  })
} catch (error) {
  process.send({ name: error.name, cause: error.cause.code, isAborted: signal.aborted })
}
