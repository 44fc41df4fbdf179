import { startRedisCluster } from '../servers/redis-cluster.js'
import { runCasesOnRedis } from '../stores/redis/conformance.js'

;(['ioredis', 'redis'] as const).forEach((driver, index) => {
  runCasesOnRedis(driver, `a Redis Cluster through ${driver}`, () => startRedisCluster(), {
    share: { part: index + 1, of: 3 },
  })
})
