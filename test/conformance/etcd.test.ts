import { startEtcd } from '../servers/etcd.js'
import { runCasesOnEtcd } from '../stores/etcd/conformance.js'

// A share of the cases: npm run test:all runs every one, here and on three servers.
runCasesOnEtcd('etcd', () => startEtcd(), { share: { part: 0, of: 9 }, strict: { part: 2, of: 13 } })
