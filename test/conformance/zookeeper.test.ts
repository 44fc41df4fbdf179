import { startZooKeeper } from '../servers/zookeeper.js'
import { runCasesOnZooKeeper } from '../stores/zookeeper/conformance.js'

// Each case is run in one of the orders, here or on the ensemble.
runCasesOnZooKeeper('zookeeper', () => startZooKeeper(), {
  share: { part: 0, of: 9 },
  strict: { part: 2, of: 13 },
})
