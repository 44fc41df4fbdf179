// What no lock on Redis can do without: the least that takes a lock and gives it back. No queue, no
// fence, no waiting.
import { randomUUID } from 'node:crypto'

const LEASE_MS = 30_000
const DELETE_OWN =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"

/** SET NX PX and a compare-and-delete on that client. */
export function bareIoredis(client) {
  client.defineCommand('deleteOwn', { numberOfKeys: 1, lua: DELETE_OWN })
  return async (task) => {
    const token = randomUUID()
    await client.set(`raw-${task}`, token, 'PX', LEASE_MS, 'NX')
    await client.deleteOwn(`raw-${task}`, token)
  }
}

export async function bareNodeRedis(client) {
  const sha = await client.scriptLoad(DELETE_OWN)
  return async (task) => {
    const token = randomUUID()
    await client.set(`raw-${task}`, token, { PX: LEASE_MS, NX: true })
    await client.evalSha(sha, { keys: [`raw-${task}`], arguments: [token] })
  }
}
