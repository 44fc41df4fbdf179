import { startRedisCluster } from '../servers/redis-cluster.js'
import { runCasesOnRedis } from '../stores/redis/conformance.js'
;(['ioredis', 'redis'] as const).forEach((driver, index) => {
  runCasesOnRedis(driver, `a Redis Cluster through ${driver}`, () => startRedisCluster(), {
    share: { part: 2 * index + 1, of: 17 },
    order: index === 0 ? 'cohort' : 'strict',
  })
})
