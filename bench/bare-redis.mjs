// What no lock on Redis can do without. `pair`: the least that takes a lock and gives it back. No
// queue, no fence, no waiting. `leastPair`: the same by two scripts that read the clock, and read and
// write one field, as every lock with a line needs them.
import { randomUUID } from 'node:crypto'

const LEASE_MS = 30_000
const DELETE_OWN =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
const READ = "local time, owner = redis.call('TIME'), redis.call('HGET', KEYS[1], '#')"
const TAKE = `${READ} redis.call('HSET', KEYS[1], '#', ARGV[1]) return time[1] .. time[2]`
const GIVE = `${READ} if owner ~= ARGV[1] then return '0' end redis.call('HSET', KEYS[1], '#', '') return '1'`

/** Both on that client. */
export function bareIoredis(client) {
  for (const [name, lua] of Object.entries({ deleteOwn: DELETE_OWN, take: TAKE, give: GIVE }))
    client.defineCommand(name, { numberOfKeys: 1, lua })
  return {
    async pair(task) {
      const token = randomUUID()
      await client.set(`raw-${task}`, token, 'PX', LEASE_MS, 'NX')
      await client.deleteOwn(`raw-${task}`, token)
    },
    async leastPair(task) {
      const token = randomUUID()
      await client.take(`least-${task}`, token)
      await client.give(`least-${task}`, token)
    },
  }
}

export async function bareNodeRedis(client) {
  const scripts = [DELETE_OWN, TAKE, GIVE]
  const [deleteOwn, take, give] = await Promise.all(scripts.map((text) => client.scriptLoad(text)))
  return {
    async pair(task) {
      const [token, keys] = [randomUUID(), [`raw-${task}`]]
      await client.set(keys[0], token, { PX: LEASE_MS, NX: true })
      await client.evalSha(deleteOwn, { keys, arguments: [token] })
    },
    async leastPair(task) {
      const [token, keys] = [randomUUID(), [`least-${task}`]]
      await client.evalSha(take, { keys, arguments: [token] })
      await client.evalSha(give, { keys, arguments: [token] })
    },
  }
}
