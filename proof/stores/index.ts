import type { ProvedStore } from '../store.js'
import { etcd, etcdCluster } from './etcd.js'
import { mariadb } from './mariadb.js'
import { memcached } from './memcached.js'
import { memory } from './memory.js'
import { postgres } from './postgres.js'
import { quorum, quorumOfDatabases, quorumOfFive } from './quorum.js'
import { redis } from './redis.js'
import { redisCluster, redisSentinel } from './redis-groups.js'
import { sqlite } from './sqlite.js'
import { zookeeper, zookeeperEnsemble } from './zookeeper.js'

/** In the order of the report. */
export const STORES: readonly ProvedStore[] = [
  ...[memory, sqlite, redis, redisSentinel, redisCluster, postgres, mariadb],
  ...[etcd, etcdCluster, zookeeper, zookeeperEnsemble, memcached],
  ...[quorum, quorumOfFive, quorumOfDatabases],
]
