import { startPostgres } from '../../test/servers/postgres.js'
import { killedServers } from '../nemeses/servers.js'
import { singleServer, THE_SERVER } from './single.js'

export const postgres = singleServer({
  name: 'postgres',
  title: 'PostgreSQL',
  page: 'postgres',
  leaseMs: 2000,
  setup: 'one server; half of the clients use pg, half postgres',
  needs: 'postgres',
  startServer: (clock, disk) =>
    startPostgres({ args: ['-c', 'fsync=on'], ...(clock && { clock }), ...(disk && { disk }) }),
  usesDisk: true,
  urlAt: (address, worker) =>
    `postgres://postgres@${address}/postgres?connections=4&driver=${worker % 2 === 0 ? 'pg' : 'postgres'}`,
  clockExcuse: 'leases end early by that much',
  more: (targets, leaseMs) => [killedServers(THE_SERVER, leaseMs, targets)],
})
