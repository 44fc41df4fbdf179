import { startRedisCluster } from '../servers/redis-cluster.js'
import { runCasesOnRedis } from '../stores/redis/conformance.js'

for (const driver of ['ioredis', 'redis'] as const)
  runCasesOnRedis(driver, `a Redis Cluster through ${driver}`, () => startRedisCluster())
