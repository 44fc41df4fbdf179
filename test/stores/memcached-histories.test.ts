import { afterAll, beforeAll, it } from 'vitest'
import { memcached } from '../../src/stores/memcached/index.js'
import { storeHistories } from '../../src/testing/histories.js'
import { describeOn } from '../servers/availability.js'
import { type MemcachedProcess, startMemcached } from '../servers/memcached.js'

/** HOLDFAST_RUNS=2000 runs more of them. */
const RUNS = Number(process.env['HOLDFAST_RUNS'] ?? 15)

describeOn('memcached', 'generated histories on the memcached store', () => {
  let server: MemcachedProcess
  beforeAll(async () => {
    server = await startMemcached()
  })
  afterAll(() => server.stop())

  it(
    'agree with the model while time passes',
    async () => {
      await storeHistories({
        makeStore: (env) => memcached(server.address, { env }),
        fences: 'resource',
        runs: RUNS,
      })
    },
    60_000 + RUNS * 2000,
  )

  it('agree with the model by the clock of the server', async () => {
    await storeHistories({
      makeStore: () => memcached(server.address),
      clock: 'server',
      fences: 'resource',
      runs: 8,
    })
  }, 90_000)
})
