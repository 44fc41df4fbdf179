import { startRedis } from '../../test/servers/redis.js'
import { killedServers, serversWithoutDescriptors } from '../nemeses/servers.js'
import { singleServer } from './single.js'

export const redis = singleServer({
  name: 'redis',
  title: 'Redis, one server',
  page: 'redis',
  leaseMs: 2000,
  setup: 'one server with `appendfsync always`; half of the clients use ioredis, half redis',
  needs: 'redis',
  startServer: (own) => startRedis({ persistence: 'always', ...own }),
  usesDisk: true,
  tinyDiskMb: 1024,
  urlAt: (address, worker) => `redis://${address}?driver=${worker % 2 === 0 ? 'ioredis' : 'redis'}`,
  clockExcuse: 'leases end early by that much',
  more: (hit, leaseMs) => [...killedServers(hit, leaseMs), serversWithoutDescriptors(hit, leaseMs)],
  missing: [
    {
      fault: 'the server back without its data',
      reason: 'as its clock was set back before, fences would begin again below the old ones',
    },
  ],
})
