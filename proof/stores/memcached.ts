import { startMemcached } from '../../test/servers/memcached.js'
import { forgetfulServers } from '../nemeses/servers.js'
import { singleServer } from './single.js'

export const memcached = singleServer({
  name: 'memcached',
  title: 'memcached',
  page: 'memcached',
  leaseMs: 2000,
  setup: 'one server',
  needs: 'memcached',
  startServer: () => startMemcached(),
  urlAt: (address) => `memcached://${address}`,
  clientClockExcuse: 'a wrong clock of a client counts for five seconds at most',
  more: (hit, leaseMs) => [forgetfulServers(hit, leaseMs, 'everything is lost; fences go on from the clock')],
  missing: [
    { fault: 'kills with data kept, disks', reason: 'it keeps nothing on disk' },
    {
      fault: 'the server out of file descriptors',
      reason: 'it then accepts no connection until it is started again, without Holdfast, too',
    },
  ],
})
