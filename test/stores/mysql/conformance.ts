import { afterAll, beforeAll } from 'vitest'
import { systemEnv } from '../../../src/base/env.js'
import { mysql } from '../../../src/stores/mysql/index.js'
import { runCases, runStrictCases, type Share } from '../../conformance/run-cases.js'
import { describeOn } from '../../servers/availability.js'
import { borrowMariadb } from '../../servers/mariadb.js'
import { spaced } from '../spaced.mjs'
import { type DriverName, openPool, type Pool } from './pools.js'

/** The conformance suite through one driver and one pool, each case with spaces of its own; `strict`: which of the cases to run in strict order. */
export function runCasesOnMysql(driver: DriverName, title: string, share?: Share, strict?: Share): void {
  describeOn(
    'mariadb',
    title,
    () => {
      let server: Awaited<ReturnType<typeof borrowMariadb>>
      let pool: Pool
      beforeAll(async () => {
        server = await borrowMariadb()
        pool = openPool(driver, server.url, 40)
        // Made before the first case, whose leases may be short.
        const first = mysql(pool).connect({ id: 'first', space: 'first', push: () => {} })
        await first.pulse([])
        await first.close()
      })
      afterAll(async () => {
        await pool.end()
        await server.stop()
      })

      const subject = {
        name: title,
        storeModule: new URL('spaced-store.mjs', import.meta.url).href,
        async open() {
          const prefix = `${systemEnv.id()}/`
          return {
            store: () => spaced(mysql(pool), prefix),
            url: `${server.url}?driver=${driver}&connections=3#${prefix}`,
            dispose: async () => {},
          }
        },
      }
      runCases(subject, share)
      if (strict) runStrictCases(subject, strict)
    },
    { own: false },
  )
}
