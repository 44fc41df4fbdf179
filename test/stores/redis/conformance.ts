import { afterAll, beforeAll } from 'vitest'
import { systemEnv } from '../../../src/base/env.js'
import { type RedisOptions, redis } from '../../../src/stores/redis/index.js'
import { runCases } from '../../conformance/run-cases.js'
import { describeOn } from '../../servers/availability.js'

/** Somewhere to run the suite. */
interface Place {
  url: string
  stop(): Promise<unknown>
}

/** The whole conformance suite through one client, each case with keys of its own. */
export function runCasesOnRedis(
  driver: NonNullable<RedisOptions['driver']>,
  title: string,
  start: () => Promise<Place>,
  need = { own: true },
): void {
  describeOn(
    'redis',
    title,
    () => {
      let place: Place
      beforeAll(async () => {
        place = await start()
      })
      afterAll(() => place.stop())

      runCases({
        name: title,
        async open() {
          const url = `${place.url}?driver=${driver}&prefix=test-${systemEnv.id()}`
          return { store: () => redis(url), url, dispose: async () => {} }
        },
      })
    },
    need,
  )
}
