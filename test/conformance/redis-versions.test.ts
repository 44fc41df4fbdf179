import { Redis as Redis5 } from 'ioredis5'
import { createClient as createClient5 } from 'redis5'
import { borrowRedis } from '../servers/redis.js'
import { runCasesOnClient } from '../stores/redis/conformance.js'

runCasesOnClient(
  'redis through ioredis 5',
  borrowRedis,
  async ({ url }) => {
    const client = new Redis5(url)
    return { client, end: () => client.disconnect() }
  },
  { own: false, share: { part: 3, of: 21 }, order: 'strict' },
)

runCasesOnClient(
  'redis through node-redis 5',
  borrowRedis,
  async ({ url }) => {
    const client = createClient5({ url })
    client.on('error', () => {})
    await client.connect()
    return { client, end: () => client.destroy() }
  },
  { own: false, share: { part: 5, of: 21 } },
)
