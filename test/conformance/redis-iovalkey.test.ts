import { borrowRedis } from '../servers/redis.js'
import { runCasesOnRedis } from '../stores/redis/conformance.js'

runCasesOnRedis('iovalkey', 'redis through iovalkey', borrowRedis, { own: false })
