/**
 * A process that takes a lock and then writes through a guard, as often as it is told. Told to pause, it stops itself (SIGSTOP) as soon as it
 * has the lock: from its own code, so that it is never stopped inside a transaction of the lock file.
 */
import { Holdfast } from 'holdfast'
import { fencedFetch, replaceFile } from 'holdfast/fence'
import { openRedis, openSql } from './clients.mjs'

/** @type {{ store: string, resource: string, lease: number, pauses: boolean, target: any }} */
const { store, resource, lease, pauses, target } = JSON.parse(process.argv[2] ?? '')

/** @param {object} message @param {() => void} [then] */
const tell = (message, then) => process.send?.(message, then)

/** Each guard, as a user would use it. */
/** @type {Record<string, (hold: import('holdfast').Hold, content: string) => Promise<unknown>>} */
const WRITES = {
  row: (hold, content) =>
    withDatabase(({ guard }) =>
      guard.update(hold, { table: target.table, set: { content }, where: { id: 1 } }),
    ),
  table: (hold, content) =>
    withDatabase(async ({ guard, ask }) => {
      await ask(target.driver === 'sqlite' ? 'BEGIN IMMEDIATE' : 'BEGIN')
      await guard.check(hold)
      await ask(`UPDATE ${target.table} SET content = '${content}' WHERE id = 1`)
      await ask('COMMIT')
    }),
  statement: (hold, content) =>
    withDatabase(async ({ guard, ask }) => {
      const fence = guard.sql(hold)
      const set = `content = '${content}', ${fence.set}`
      await ask(`UPDATE ${target.table} SET ${set} WHERE id = 1 AND ${fence.where}`)
      await guard.explain(hold, { table: target.table, where: { id: 1 } })
    }),
  file: (hold, content) => replaceFile(hold, target.path, content),
  http: async (hold, content) => {
    const response = await fencedFetch(hold, target.url, { method: 'PUT', body: content })
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  },
  redisSet: async (hold, content) => {
    const { guard } = await openRedis(target.driver, target.url)
    await guard.set(hold, target.key, content)
  },
  redisScript: async (hold, content) => {
    const { guard } = await openRedis(target.driver, target.url)
    const script = "return redis.call('SET', KEYS[1], ARGV[1])"
    await guard.run(hold, script, { keys: [target.key], arguments: [content] })
  },
}

/**
 * Opens the database for one write; a transaction that did not come to its end is undone by the closing.
 * @param {(database: import('./clients.mjs').SqlDatabase) => Promise<unknown>} work
 */
async function withDatabase(work) {
  const database = await openSql(target.driver, target.url)
  try {
    await work(database)
  } finally {
    await database.close()
  }
}

const locks = await Holdfast.open(store)
const hold = await locks.mutex(resource).acquire({ lease, wait: '30s' })

process.on('message', async (/** @type {string} */ content) => {
  const { isValid } = hold
  try {
    await WRITES[target.kind]?.(hold, content)
    tell({ isValid, written: content })
  } catch (error) {
    const { code, newestFence, message } = /** @type {any} */ (error)
    tell({ isValid, code, newestFence, message })
  }
})
tell({ fence: hold.fence }, () => {
  if (pauses) process.kill(process.pid, 'SIGSTOP')
})
