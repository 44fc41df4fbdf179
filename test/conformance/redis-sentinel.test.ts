import { createSentinel } from 'redis'
import { startRedisSentinel } from '../servers/redis-sentinel.js'
import { runCasesOnClient, runCasesOnRedis } from '../stores/redis/conformance.js'

const start = () => startRedisSentinel()

runCasesOnRedis('ioredis', 'redis with Sentinels through ioredis', start, {
  share: { part: 0, of: 17 },
})

runCasesOnRedis('redis', 'redis with Sentinels through node-redis', start, {
  share: { part: 2, of: 17 },
  order: 'strict',
})

runCasesOnClient(
  "redis with Sentinels through node-redis' own client of them",
  start,
  async ({ name, sentinels }) => {
    const client = createSentinel({
      name,
      sentinelRootNodes: sentinels.map(({ port }) => ({ host: '127.0.0.1', port })),
    })
    client.on('error', () => {})
    await client.connect()
    return { client, end: () => client.destroy() }
  },
  // Few: it sends one command at a time, and waits for each.
  { share: { part: 4, of: 31 } },
)
