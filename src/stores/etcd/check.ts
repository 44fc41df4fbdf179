import type { Connection, Finding } from '../../contract/store.js'
import type { EtcdSpace } from './space.js'

/** What `locks.check()` finds out about the servers. */
export async function checkEtcd(_space: EtcdSpace, _connection: Connection): Promise<Finding[]> {
  return []
}
