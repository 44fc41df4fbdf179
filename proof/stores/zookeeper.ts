import { QUICK_ELECTION, startZooKeeper, startZooKeeperEnsemble } from '../../test/servers/zookeeper.js'
import { killedServers } from '../nemeses/servers.js'
import { ensemble, NOT_OF_MEMBERS } from './ensemble.js'
import { LOG_TAKES_SPACE, NO_ONE_DELETES, singleServer } from './single.js'

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
  startServer: ({ disk }) => startZooKeeper({ config: { forceSync: 'yes' }, ...(disk && { disk }) }),
  usesDisk: true,
  urlAt: urlOf,
  more: killedServers,
  missing: [LOG_TAKES_SPACE, NO_ONE_DELETES],
})

export const zookeeperEnsemble = ensemble({
  ...shared,
  name: 'zookeeper-ensemble',
  title: 'ZooKeeper, three servers',
  setup: 'three servers',
  leaderPauseExcuse: 'a hold may be trusted for a moment too long',
  missing: NOT_OF_MEMBERS,
  urlAt: urlOf,
  async startServers() {
    const servers = await startZooKeeperEnsemble({ config: QUICK_ELECTION })
    return {
      servers: servers.members,
      leader: () => servers.leader(),
      stop: () => servers.stop(),
    }
  },
})
