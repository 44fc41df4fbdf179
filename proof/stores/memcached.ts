import { startMemcached } from '../../test/servers/memcached.js'
import { forgetfulServers } from '../nemeses/servers.js'
import { singleServer, THE_SERVER } from './single.js'

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
  // Not out of file descriptors: once the last connection has ended, memcached accepts no other one,
  // also when it has descriptors again.
  more: (targets, leaseMs) => [
    forgetfulServers(THE_SERVER, leaseMs, targets, 'everything is lost; fences go on from the clock'),
  ],
})
