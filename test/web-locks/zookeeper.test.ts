import { afterAll, beforeAll } from 'vitest'
import { zookeeper } from '../../src/stores/zookeeper/index.js'
import { describeOn } from '../servers/availability.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import { runOn } from './run-on.js'
import { siteOn } from './site.js'

describeOn('zookeeper', 'Web Locks on ZooKeeper', () => {
  let server: ZooKeeperServer
  let clients = 0
  beforeAll(async () => {
    server = await startZooKeeper()
  })
  afterAll(() => server?.stop())
  // Stores with the same options share a session; each client gets one of its own, as in another process.
  const newStore = () => zookeeper(server.address, { sessionTimeout: 20_000 + clients++, tick: '200ms' })
  runOn(
    'zookeeper',
    () => siteOn(newStore, { url: `zookeeper://${server.address}?sessionTimeout=20s&tick=200ms` }),
    { part: 3, of: 6 },
  )
})
