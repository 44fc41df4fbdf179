import { startRedis } from '../../test/servers/redis.js'
import { killedServers, withoutDescriptors } from '../nemeses/servers.js'
import { singleServer, THE_SERVER } from './single.js'

export const redis = singleServer({
  name: 'redis',
  title: 'Redis, one server',
  page: 'redis',
  leaseMs: 2000,
  setup: 'one server with `appendfsync always`; half of the clients use ioredis, half redis',
  needs: 'redis',
  startServer: (clock, disk) =>
    startRedis({ persistence: 'always', ...(clock && { clock }), ...(disk && { disk }) }),
  usesDisk: true,
  urlAt: (address, worker) => `redis://${address}?driver=${worker % 2 === 0 ? 'ioredis' : 'redis'}`,
  clockExcuse: 'leases end early by that much',
  more: (targets, leaseMs) => [
    killedServers(THE_SERVER, leaseMs, targets),
    withoutDescriptors(THE_SERVER, leaseMs, targets),
  ],
})
