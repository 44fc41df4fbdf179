import { afterAll, beforeAll, it } from 'vitest'
import { etcd } from '../../src/stores/etcd/index.js'
import { storeHistories } from '../../src/testing/histories.js'
import { describeOn } from '../servers/availability.js'
import { type EtcdServer, startEtcd } from '../servers/etcd.js'
import { routed } from './zookeeper/routed.js'

describeOn('etcd', 'generated histories on the etcd store', () => {
  let server: EtcdServer
  let roots = 0
  beforeAll(async () => {
    server = await startEtcd()
  })
  afterAll(() => server?.stop())

  // A difference is made smaller before it is told, and each attempt takes a tenth of a second here.
  it('agree with the model', { timeout: 300_000 }, async () => {
    const makeStore = () => routed(etcd(server.address, { root: `history-${roots++}/`, ttl: '60s' }))
    await storeHistories({
      makeStore,
      runs: 60,
      commandsPerRun: 30,
      clock: 'server',
      fences: 'group',
    })
  })
})
