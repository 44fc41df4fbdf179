import { startEtcd, startEtcdCluster } from '../../test/servers/etcd.js'
import { killedServers } from '../nemeses/servers.js'
import { ensemble, NOT_OF_MEMBERS } from './ensemble.js'
import { LOG_TAKES_SPACE, NO_ONE_DELETES, singleServer } from './single.js'

const LEASE_MS = 3000
/** `ttl` ends a hold, and no lease is shorter. */
const shared = { page: 'etcd', leaseMs: LEASE_MS, askedLeaseMs: 10 * LEASE_MS, needs: 'etcd' } as const
const urlOf = (address: string): string => `etcd://${address}?ttl=${LEASE_MS}ms`

export const etcd = singleServer({
  ...shared,
  name: 'etcd',
  title: 'etcd, one server',
  setup: 'one server',
  startServer: () => startEtcd(),
  urlAt: urlOf,
  more: killedServers,
  missing: [
    LOG_TAKES_SPACE,
    NO_ONE_DELETES,
    { fault: 'clock and slow disk of the server', reason: 'etcd does not call the C library' },
  ],
})

export const etcdCluster = ensemble({
  ...shared,
  name: 'etcd-cluster',
  title: 'etcd, three servers',
  setup: 'three servers',
  leaderPauseExcuse: 'a hold may be trusted for a moment too long',
  missing: NOT_OF_MEMBERS,
  urlAt: urlOf,
  async startServers() {
    const cluster = await startEtcdCluster()
    return {
      servers: cluster.members,
      leader: async () => (await cluster.ranked()).leader,
      stop: () => cluster.stop(),
    }
  },
})
