import { afterAll, beforeAll } from 'vitest'
import { systemEnv } from '../../../src/base/env.js'
import { type RedisOptions, redis } from '../../../src/stores/redis/index.js'
import { runCases, type Share } from '../../conformance/run-cases.js'
import { describeOn } from '../../servers/availability.js'

/** Somewhere to run the suite. */
interface Place {
  url: string
  stop(): Promise<unknown>
}

/** The conformance suite through one client, each case with keys of its own. */
export function runCasesOnRedis(
  driver: NonNullable<RedisOptions['driver']>,
  title: string,
  start: () => Promise<Place>,
  { own = true, share }: { own?: boolean; share?: Share } = {},
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

      const subject = {
        name: title,
        async open() {
          const url = `${place.url}?driver=${driver}&prefix=test-${systemEnv.id()}`
          return { store: () => redis(url), url, dispose: async () => {} }
        },
      }
      runCases(subject, share)
    },
    { own },
  )
}
