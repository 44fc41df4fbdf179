// The contestants: each opens, and gives `pair(task)`, one acquire and release of the lock with
// that number.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Mutex } from 'async-mutex'
import { Holdfast } from 'holdfast'
import { memory } from 'holdfast/memory'
import { sqlite } from 'holdfast/sqlite'
import lockfile from 'proper-lockfile'

export const contenders = {
  'holdfast memory': async () => holdfast(new Holdfast(memory())),
  'holdfast sqlite': async (folder) => holdfast(new Holdfast(sqlite(join(folder, 'locks.db')))),

  'async-mutex': async () => {
    const mutexes = Array.from({ length: 64 }, () => new Mutex())
    return { pair: (task) => mutexes[task].runExclusive(async () => {}), close: async () => {} }
  },

  // Waits for ever, with the pauses that it has by default (a second and more).
  'proper-lockfile': async (folder) => properLockfile(folder, { forever: true }),
  // Its pauses made as short as its retry module allows.
  'proper-lockfile, 1-2 ms': async (folder) =>
    properLockfile(folder, { forever: true, factor: 1, minTimeout: 1, maxTimeout: 2 }),
}

function properLockfile(folder, retries) {
  const paths = Array.from({ length: 64 }, (_, task) => join(folder, `file-${task}`))
  for (const path of paths) writeFileSync(path, '', { flag: 'a' })
  return {
    pair: async (task) => (await lockfile.lock(paths[task], { realpath: false, retries }))(),
    close: async () => {},
  }
}

function holdfast(locks) {
  const mutexes = Array.from({ length: 64 }, (_, task) => locks.mutex(`lock-${task}`))
  return {
    pair: async (task) => {
      const hold = await mutexes[task].acquire()
      await hold.release()
    },
    close: () => locks.close(),
  }
}
