import { afterAll, beforeAll, it } from 'vitest'
import { mysql } from '../../src/stores/mysql/index.js'
import { storeHistories } from '../../src/testing/histories.js'
import { describeOn } from '../servers/availability.js'
import { borrowMariadb } from '../servers/mariadb.js'

/** HOLDFAST_RUNS=2000 runs more of them. */
const RUNS = Number(process.env['HOLDFAST_RUNS'] ?? 60)

describeOn(
  'mariadb',
  'generated histories on the MySQL store',
  () => {
    let server: Awaited<ReturnType<typeof borrowMariadb>>
    beforeAll(async () => {
      server = await borrowMariadb()
    })
    afterAll(() => server.stop())

    it(
      'agree with the model while time passes',
      async () => {
        await storeHistories({
          makeStore: (env) => mysql(server.url, { env }),
          fences: 'resource',
          runs: RUNS,
        })
      },
      60_000 + RUNS * 2000,
    )

    it.each(['mysql2', 'mariadb'] as const)(
      'agree with the model by the clock of the server, through %s',
      async (driver) => {
        await storeHistories({
          makeStore: () => mysql(server.url, { driver }),
          clock: 'server',
          fences: 'resource',
          runs: 20,
        })
      },
      90_000,
    )
  },
  { own: false },
)
