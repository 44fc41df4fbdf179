import { afterAll, beforeAll, it } from 'vitest'
import { zookeeper } from '../../src/stores/zookeeper/index.js'
import { storeHistories } from '../../src/testing/histories.js'
import { describeOn } from '../servers/availability.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import { routed } from './zookeeper/routed.js'

describeOn('zookeeper', 'generated histories on the ZooKeeper store', () => {
  let server: ZooKeeperServer
  let roots = 0
  beforeAll(async () => {
    server = await startZooKeeper()
  })
  afterAll(() => server?.stop())

  // A difference is made smaller before it is told, and each attempt takes a tenth of a second here.
  it('agree with the model', { timeout: 300_000 }, async () => {
    const makeStore = () => routed(zookeeper(server.address, { root: `/history-${roots++}`, tick: '200ms' }))
    await storeHistories({
      makeStore,
      runs: 100,
      commandsPerRun: 30,
      clock: 'server',
      fences: 'group',
    })
  })
})
