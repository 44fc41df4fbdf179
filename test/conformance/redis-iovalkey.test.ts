import { borrowRedis } from '../servers/redis.js'
import { runCasesOnRedis } from '../stores/redis/conformance.js'

runCasesOnRedis('iovalkey', 'redis through iovalkey', borrowRedis, {
  own: false,
  share: { part: 1, of: 13 },
  order: 'strict',
})
