import { startEtcd } from '../servers/etcd.js'
import { startMariadb } from '../servers/mariadb.js'
import { startMemcached } from '../servers/memcached.js'
import { startPostgres } from '../servers/postgres.js'
import { startQuorum } from '../servers/quorum.js'
import { startRedis } from '../servers/redis.js'
import { startZooKeeper } from '../servers/zookeeper.js'
import { describeVersions } from './cases.js'

describeVersions({ name: 'Redis', needs: 'redis', start: () => startRedis() }, { inSuite: true })
describeVersions({ name: 'PostgreSQL', needs: 'postgres', start: () => startPostgres() })
describeVersions({ name: 'MariaDB', needs: 'mariadb', start: () => startMariadb() })
describeVersions({ name: 'memcached', needs: 'memcached', start: () => startMemcached() })
describeVersions({
  name: 'a quorum of three Redis',
  needs: 'redis',
  locksOnly: 'a quorum keeps only locks',
  start: () => startQuorum(['redis', 'redis', 'redis']),
})
// In these two, what a killed process held ends with its session.
describeVersions({
  name: 'ZooKeeper',
  needs: 'zookeeper',
  async start() {
    const server = await startZooKeeper()
    return { url: `zookeeper://${server.address}?sessionTimeout=6s`, stop: () => server.stop() }
  },
})
describeVersions({
  name: 'etcd',
  needs: 'etcd',
  async start() {
    const server = await startEtcd()
    return { url: `${server.url}?ttl=6s`, stop: () => server.stop() }
  },
})
