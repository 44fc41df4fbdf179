import { startMariadb } from '../../test/servers/mariadb.js'
import { killedServers } from '../nemeses/servers.js'
import { LOG_TAKES_SPACE, NO_ONE_DELETES, singleServer } from './single.js'

export const mariadb = singleServer({
  name: 'mariadb',
  title: 'MariaDB',
  page: 'mysql',
  leaseMs: 2000,
  setup: 'one server; half of the clients use mysql2, half mariadb',
  needs: 'mariadb',
  startServer: (own) => startMariadb(own),
  urlAt: (address, worker) =>
    `mysql://root@${address}/test?connections=4&driver=${worker % 2 === 0 ? 'mysql2' : 'mariadb'}`,
  clockExcuse: 'leases end early by that much',
  more: killedServers,
  missing: [LOG_TAKES_SPACE, NO_ONE_DELETES],
})
