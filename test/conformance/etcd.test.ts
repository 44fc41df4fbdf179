import { startEtcd } from '../servers/etcd.js'
import { runCasesOnEtcd } from '../stores/etcd/conformance.js'

// Each case is run in one of the orders, here or on three servers.
runCasesOnEtcd('etcd', () => startEtcd(), { share: { part: 0, of: 4 }, strict: { part: 2, of: 5 } })
