import { afterAll, beforeAll, it } from 'vitest'
import { postgres } from '../../src/stores/postgres/index.js'
import { storeHistories } from '../../src/testing/histories.js'
import { describeOn } from '../servers/availability.js'
import { borrowPostgres } from '../servers/postgres.js'
import { heard } from './postgres/heard-store.js'

/** HOLDFAST_RUNS=20000 runs more of them. */
const RUNS = Number(process.env['HOLDFAST_RUNS'] ?? 60)

describeOn(
  'postgres',
  'generated histories on the PostgreSQL store',
  () => {
    let server: Awaited<ReturnType<typeof borrowPostgres>>
    beforeAll(async () => {
      server = await borrowPostgres()
    })
    afterAll(() => server.stop())

    it(
      'agree with the model while time passes',
      async () => {
        await storeHistories({
          makeStore: (env) => heard(postgres(server.url, { env })),
          fences: 'resource',
          runs: RUNS,
        })
      },
      60_000 + RUNS * 1000,
    )

    it.each(['pg', 'postgres'] as const)(
      'agree with the model by the clock of the server, through %s',
      async (driver) => {
        await storeHistories({
          makeStore: () => heard(postgres(server.url, { driver })),
          clock: 'server',
          fences: 'resource',
          runs: 30,
        })
      },
      120_000,
    )
  },
  { own: false },
)
