import { startRedisCluster } from '../servers/redis-cluster.js'
import { runCasesOnRedis } from '../stores/redis/conformance.js'

/** Nobody dies here: a machine that stands still for a moment shall not lead to a fail-over, which may lose grants. */
const start = () => startRedisCluster(() => ({ args: ['--cluster-node-timeout', '60000'] }))

;(['ioredis', 'redis'] as const).forEach((driver, index) => {
  runCasesOnRedis(driver, `a Redis Cluster through ${driver}`, start, {
    share: { part: 2 * index + 1, of: 13 },
    order: index === 0 ? 'cohort' : 'strict',
  })
})
