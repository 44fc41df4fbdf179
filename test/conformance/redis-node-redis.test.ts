import { borrowRedis } from '../servers/redis.js'
import { runCasesOnRedis } from '../stores/redis/conformance.js'

runCasesOnRedis('redis', 'redis through node-redis', borrowRedis, { own: false, share: { part: 0, of: 9 } })
