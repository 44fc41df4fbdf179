import { startZooKeeperEnsemble } from '../servers/zookeeper.js'
import { runCasesOnZooKeeper } from '../stores/zookeeper/conformance.js'

runCasesOnZooKeeper('a ZooKeeper ensemble', () => startZooKeeperEnsemble(), {
  share: { part: 1, of: 13 },
  strict: { part: 5, of: 17 },
})
