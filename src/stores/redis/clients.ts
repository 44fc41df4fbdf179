import { invalid } from '../../base/errors.js'
import type { RedisDriver } from './driver.js'
import { IoredisDriver, isIoredis } from './ioredis.js'
import { isNodeRedis, NodeRedisDriver } from './node-redis.js'

/** Opens a driver over a client of the caller's, which stays the caller's. */
export function driverOpener(client: object): () => RedisDriver {
  if (isIoredis(client)) return () => new IoredisDriver(client, false)
  if (isNodeRedis(client)) return () => new NodeRedisDriver(client, false)
  throw invalid(
    'Holdfast does not know this client; pass a client, Cluster or Sentinel of ioredis, redis (5 or later) or iovalkey, or a URL',
  )
}
