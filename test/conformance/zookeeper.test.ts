import { startZooKeeper } from '../servers/zookeeper.js'
import { runCasesOnZooKeeper } from '../stores/zookeeper/conformance.js'

runCasesOnZooKeeper('zookeeper', () => startZooKeeper(), { part: 0, of: 2 })
