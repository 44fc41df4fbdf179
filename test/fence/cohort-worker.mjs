/**
 * A process whose tasks want the same lock at the same time, and write under it through a guard. Told to pause, its first task takes the lock and
 * stops the process (SIGSTOP) while two others wait; that task writes last of all.
 */
import { Holdfast } from 'holdfast'
import { openSql } from './clients.mjs'

/** @type {{ store: string, url: string, lease: number, work: 'pause' | 'tasks', tasks: number, rounds: number }} */
const { store, url, lease, work, tasks, rounds } = JSON.parse(process.argv[2] ?? '')
const locks = await Holdfast.open(store)
const lock = locks.mutex('order:42')
const { guard, ask } = await openSql('sqlite', url)

/** @param {object} message @param {() => void} [then] */
const tell = (message, then) => process.send?.(message, then)

/** @param {import('holdfast').Hold} hold @param {string} task */
async function write(hold, task) {
  await ask('BEGIN IMMEDIATE')
  try {
    await guard.check(hold)
    await ask(`INSERT INTO log (fence, pid, task) VALUES (${hold.fence}, ${process.pid}, '${task}')`)
    await ask('COMMIT')
  } catch (error) {
    await ask('ROLLBACK')
    throw error
  }
}

async function runTasks() {
  let written = 0
  const one = async (/** @type {number} */ number) => {
    for (let round = 0; round < rounds; round++) {
      await lock.run((hold) => write(hold, String(number)), { lease })
      written++
    }
  }
  await Promise.all(Array.from({ length: tasks }, (_, number) => one(number)))
  await locks.close()
  tell({ written })
}

async function pauseAsHolder() {
  /** @type {string[]} */
  const outcomes = []
  const holder = await lock.acquire({ lease })
  const neighbours = [1, 2].map((number) =>
    lock
      .run((hold) => write(hold, `neighbour ${number}`), { lease })
      .then(() => outcomes.push(`neighbour ${number} written`)),
  )
  await new Promise((resolve) => {
    tell({ fence: holder.fence }, () => resolve(process.kill(process.pid, 'SIGSTOP')))
  })
  await Promise.all(neighbours)
  await write(holder, 'holder').then(
    () => outcomes.push('holder written'),
    (error) => outcomes.push(`holder ${error.code}`),
  )
  await locks.close()
  tell({ outcomes })
}

await (work === 'pause' ? pauseAsHolder() : runTasks())
