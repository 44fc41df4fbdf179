import { afterAll, beforeAll } from 'vitest'
import { systemEnv } from '../../../src/base/env.js'
import type { LockOrder } from '../../../src/primitives/options.js'
import { type RedisClient, type RedisOptions, redis } from '../../../src/stores/redis/index.js'
import type { ConformanceSubject } from '../../../src/testing/index.js'
import { runCases, runStrictCases, type Share } from '../../conformance/run-cases.js'
import { describeOn } from '../../servers/availability.js'

/** Somewhere to run the suite. */
export interface Place {
  url: string
  stop(): Promise<unknown>
}

/** A client as users make it, with the way to end it. */
export interface OwnClient {
  client: RedisClient
  end(): unknown
}

interface RunOptions {
  /** Whether it must be a server of its own. */
  own?: boolean
  share?: Share
  /** Where it is a share: in which order its locks serve those who wait. Default `'cohort'`. */
  order?: LockOrder
}

/** The conformance suite through one package, by a URL, each case with keys of its own. */
export function runCasesOnRedis(
  driver: NonNullable<RedisOptions['driver']>,
  title: string,
  start: () => Promise<Place>,
  options: RunOptions = {},
): void {
  runAt(title, start, options, (place) => ({
    name: title,
    async open() {
      const url = `${place().url}?driver=${driver}&prefix=test-${systemEnv.id()}`
      return { store: () => redis(url), url, dispose: async () => {} }
    },
  }))
}

/** The same through a client that the user has: all clients of a case share it. */
export function runCasesOnClient<P extends Place>(
  title: string,
  start: () => Promise<P>,
  connect: (place: P) => Promise<OwnClient>,
  options: RunOptions = {},
): void {
  runAt(title, start, options, (place) => ({
    name: title,
    oneProcess: 'a client of the user is in one process',
    async open() {
      const { client, end } = await connect(place())
      const prefix = `test-${systemEnv.id()}`
      return { store: () => redis(client, { prefix }), dispose: async () => void (await end()) }
    },
  }))
}

function runAt<P extends Place>(
  title: string,
  start: () => Promise<P>,
  { own = true, share, order }: RunOptions,
  subjectAt: (place: () => P) => ConformanceSubject,
): void {
  describeOn(
    'redis',
    title,
    () => {
      let place: P
      beforeAll(async () => {
        place = await start()
      })
      afterAll(() => place.stop())
      const declare = order === 'strict' ? runStrictCases : runCases
      declare(
        subjectAt(() => place),
        share,
      )
    },
    { own },
  )
}
