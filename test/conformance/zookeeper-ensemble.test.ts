import { startZooKeeperEnsemble } from '../servers/zookeeper.js'
import { runCasesOnZooKeeper } from '../stores/zookeeper/conformance.js'

runCasesOnZooKeeper('a ZooKeeper ensemble', () => startZooKeeperEnsemble(), { part: 1, of: 2 })
