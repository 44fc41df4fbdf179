import { afterAll, beforeAll } from 'vitest'
import { systemEnv } from '../../../src/base/env.js'
import { type PostgresOptions, postgres } from '../../../src/stores/postgres/index.js'
import { runCases, runStrictCases, type Share } from '../../conformance/run-cases.js'
import { describeOn, type ServerName } from '../../servers/availability.js'
import { spaced } from '../spaced.mjs'
import { openPool, type Pool } from './pools.js'

/** Somewhere to run the suite. */
interface Place {
  url: string
  /** Of the server itself, where `url` leads to a pooler. */
  listenUrl?: string
  stop(): Promise<unknown>
}

interface RunOptions {
  /** Whether it must be a server of its own. */
  own?: boolean
  needs?: ServerName
  share?: Share
  /** Which of the cases to run in strict order. */
  strict?: Share
}

/**
 * The conformance suite through one driver and one pool, each case with spaces of its own. Its clients are of two store values in turn, so that
 * some hand-offs stay inside one and some go from one to the other.
 */
export function runCasesOnPostgres(
  driver: NonNullable<PostgresOptions['driver']>,
  title: string,
  start: () => Promise<Place>,
  { own = true, needs = 'postgres', share, strict }: RunOptions = {},
): void {
  describeOn(
    needs,
    title,
    () => {
      let place: Place
      let pool: Pool
      beforeAll(async () => {
        place = await start()
        pool = openPool(driver, place.url, 20)
      })
      afterAll(async () => {
        await pool.end()
        await place.stop()
      })

      const subject = {
        name: title,
        storeModule: new URL('spaced-store.mjs', import.meta.url).href,
        async open() {
          const prefix = `${systemEnv.id()}/`
          const listen = place.listenUrl ?? true
          const url = `${place.url}?driver=${driver}&connections=2&listen=${encodeURIComponent(listen)}`
          let count = 0
          return {
            store: () => spaced(postgres(pool, { listen, retention: count++ % 2 ? '1m' : '2m' }), prefix),
            url: `${url}#${prefix}`,
            dispose: async () => {},
          }
        },
      }
      runCases(subject, share)
      if (strict) runStrictCases(subject, strict)
    },
    { own },
  )
}
