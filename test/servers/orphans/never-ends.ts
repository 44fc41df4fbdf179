import { renameSync, writeFileSync } from 'node:fs'
import { it } from 'vitest'
import { serverAvailability } from '../availability.js'
import { startPostgres } from '../postgres.js'
import { startRedis } from '../redis.js'
import { startRedisSentinel } from '../redis-sentinel.js'

/** Starts servers, says so in a file, and goes on for ever: the run is ended from outside. */
it('never ends', async () => {
  const redis = await startRedis()
  redis.pause()
  // Of many processes: all of them stand still, but for the one that is to end them.
  const databases = serverAvailability('postgres') ? [] : [await startPostgres()]
  for (const database of databases) database.pause()
  const group = await startRedisSentinel()
  const sessions = databases.flatMap((database) => database.sessions)
  const servers = [redis, ...databases, ...group.nodes, ...group.sentinels].map(({ pid, folder }) => ({
    pid,
    folder,
  }))
  await group.nodes[0].kill()
  tell({ worker: process.pid, servers, sessions })
  setInterval(() => {}, 1000)
  await new Promise(() => {})
})

/** All of it at once: the test reads the file as soon as it exists. */
function tell(started: object): void {
  const file = process.env['HOLDFAST_ORPHANS'] ?? ''
  writeFileSync(`${file}.part`, JSON.stringify(started))
  renameSync(`${file}.part`, file)
}
