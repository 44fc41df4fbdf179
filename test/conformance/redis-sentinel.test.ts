import { startRedisSentinel } from '../servers/redis-sentinel.js'
import { runCasesOnRedis } from '../stores/redis/conformance.js'

runCasesOnRedis('ioredis', 'redis with Sentinels through ioredis', () => startRedisSentinel(), {
  share: { part: 0, of: 3 },
})
