import { startPostgres } from '../../test/servers/postgres.js'
import { killedServers } from '../nemeses/servers.js'
import { LOG_TAKES_SPACE, NO_ONE_DELETES, singleServer } from './single.js'

export const postgres = singleServer({
  name: 'postgres',
  title: 'PostgreSQL',
  page: 'postgres',
  leaseMs: 2000,
  setup: 'one server; half of the clients use pg, half postgres',
  needs: 'postgres',
  startServer: (own) => startPostgres({ args: ['-c', 'fsync=on'], ...own }),
  usesDisk: true,
  urlAt: (address, worker) =>
    `postgres://postgres@${address}/postgres?connections=4&driver=${worker % 2 === 0 ? 'pg' : 'postgres'}`,
  clockExcuse: 'leases end early by that much',
  more: killedServers,
  missing: [LOG_TAKES_SPACE, NO_ONE_DELETES],
})
