import { afterAll, beforeAll } from 'vitest'
import { type PostgresOptions, postgres } from '../../../src/stores/postgres/index.js'
import { runCases, type Share } from '../../conformance/run-cases.js'
import { describeOn } from '../../servers/availability.js'

/** Somewhere to run the suite. */
interface Place {
  url: string
  stop(): Promise<unknown>
}

let venues = 0

/** The conformance suite through one driver, each case in a schema of its own. */
export function runCasesOnPostgres(
  driver: NonNullable<PostgresOptions['driver']>,
  title: string,
  start: () => Promise<Place>,
  { own = true, share }: { own?: boolean; share?: Share } = {},
): void {
  describeOn(
    'postgres',
    title,
    () => {
      let place: Place
      beforeAll(async () => {
        place = await start()
      })
      afterAll(() => place.stop())

      const subject = {
        name: title,
        async open() {
          const url = `${place.url}?driver=${driver}&schema=test_${process.pid}_${venues++}`
          return { store: () => postgres(url), url, dispose: async () => {} }
        },
      }
      runCases(subject, share)
    },
    { own },
  )
}
