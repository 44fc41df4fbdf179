import { afterAll, beforeAll, it } from 'vitest'
import { redis } from '../../src/stores/redis/index.js'
import { storeHistories } from '../../src/testing/histories.js'
import { describeOn } from '../servers/availability.js'
import { borrowRedis } from '../servers/redis.js'
import { heard } from './redis/heard-store.js'

/** HOLDFAST_RUNS=20000 runs more of them. */
const RUNS = Number(process.env['HOLDFAST_RUNS'] ?? 150)

describeOn(
  'redis',
  'generated histories on the Redis store',
  () => {
    let server: Awaited<ReturnType<typeof borrowRedis>>
    beforeAll(async () => {
      server = await borrowRedis()
    })
    afterAll(() => server.stop())

    it(
      'agree with the model while time passes',
      async () => {
        await storeHistories({
          makeStore: (env) => heard(redis(server.url, { env })),
          fences: 'resource',
          runs: RUNS,
        })
      },
      60_000 + RUNS * 200,
    )

    it.each(['ioredis', 'redis', 'iovalkey'] as const)(
      'agree with the model by the clock of the server, through %s',
      async (driver) => {
        await storeHistories({
          makeStore: () => heard(redis(server.url, { driver })),
          clock: 'server',
          fences: 'resource',
          runs: 100,
        })
      },
      300_000,
    )
  },
  { own: false },
)
