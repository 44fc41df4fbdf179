import { borrowRedis } from '../servers/redis.js'
import { runCasesOnRedis } from '../stores/redis/conformance.js'

runCasesOnRedis('ioredis', 'redis through ioredis', borrowRedis, { own: false })
