import { borrowRedis } from '../servers/redis.js'
import { runCasesOnRedis } from '../stores/redis/conformance.js'
import { EACH_ONCE } from './run-cases.js'

runCasesOnRedis('ioredis', 'redis through ioredis', borrowRedis, {
  own: false,
  share: EACH_ONCE,
})
