import { afterAll, beforeAll } from 'vitest'
import { zookeeper } from '../../src/stores/zookeeper/index.js'
import { describeOn } from '../servers/availability.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import { runCases, WHOLE } from './run-cases.js'

const SESSION = 'the session bounds every lease'
const CLOSE = 'what a client has ends with its connection, as the session may live on with others'
const ZXID = 'fences are transactions of the ensemble, which no claimant can raise'

const SKIPS = {
  'each hold has the lease that was asked for': SESSION,
  'extend gives at least that much from now, and never shortens': SESSION,
  're-entry and renewal keep the fence': `${SESSION}, and this case extends beyond it`,
  'many names pass by without a held lock being forgotten': `${SESSION}, and this case extends beyond it`,
  'the store tells a client about its own claims only':
    'who is next finds out by itself; one that leaves at that moment is told nothing',
  'promotion refreshes nothing: only the own pulse of a claim starts its lease': SESSION,
  'a hold outlives the connection that took it, and can be renewed through another one': CLOSE,
  'a closed connection refuses every call with CLOSED': CLOSE,
  'the fence is above what the claimant has seen before, even if the store has forgotten it': ZXID,
  '10000 waiters of one process make no call each while they wait, and are served in order':
    'each hand-off lists the line, as in every recipe for ZooKeeper; ten thousand names each time take minutes',
}

describeOn('zookeeper', 'conformance', () => {
  let server: ZooKeeperServer
  let place = 0
  beforeAll(async () => {
    server = await startZooKeeper()
  })
  afterAll(() => server?.stop())

  const subject = {
    name: 'zookeeper',
    async open() {
      const root = `/conformance-${place++}`
      const options = { sessionTimeout: '4s', tick: '200ms', root }
      const url = `zookeeper://${server.address}?root=${root}&sessionTimeout=4s&tick=200ms`
      return { store: () => zookeeper(server.address, options), url, dispose: async () => {} }
    },
  }
  runCases(subject, WHOLE, SKIPS)
})
