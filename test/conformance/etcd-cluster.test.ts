import { startEtcdCluster } from '../servers/etcd.js'
import { runCasesOnEtcd } from '../stores/etcd/conformance.js'

runCasesOnEtcd('three etcd servers', () => startEtcdCluster(), {
  share: { part: 3, of: 17 },
  strict: { part: 4, of: 19 },
})
