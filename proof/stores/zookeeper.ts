import { QUICK_ELECTION, startZooKeeper, startZooKeeperEnsemble } from '../../test/servers/zookeeper.js'
import { killedServers } from '../nemeses/servers.js'
import { ensemble } from './ensemble.js'
import { singleServer, THE_SERVER } from './single.js'

const LEASE_MS = 3000
/** The session ends a hold, and no lease is shorter. */
const shared = {
  page: 'zookeeper',
  leaseMs: LEASE_MS,
  askedLeaseMs: 10 * LEASE_MS,
  needs: 'zookeeper',
} as const
const urlOf = (address: string): string => `zookeeper://${address}?sessionTimeout=${LEASE_MS}ms&tick=200ms`

export const zookeeper = singleServer({
  ...shared,
  name: 'zookeeper',
  title: 'ZooKeeper, one server',
  setup: 'one server',
  // It syncs its log, so that a slow disk can be felt.
  startServer: (_, disk) => startZooKeeper({ config: { forceSync: 'yes' }, ...(disk && { disk }) }),
  usesDisk: true,
  urlAt: urlOf,
  more: (targets, leaseMs) => [killedServers(THE_SERVER, leaseMs, targets)],
})

export const zookeeperEnsemble = ensemble({
  ...shared,
  name: 'zookeeper-ensemble',
  title: 'ZooKeeper, three servers',
  setup: 'three servers',
  leaderPauseExcuse: 'a hold may be trusted for a moment too long',
  async startServers() {
    const servers = await startZooKeeperEnsemble({ config: QUICK_ELECTION })
    return {
      servers: servers.members,
      url: urlOf(servers.address),
      leader: () => servers.leader(),
      stop: () => servers.stop(),
    }
  },
})
