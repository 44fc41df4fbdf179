import { afterAll, beforeAll } from 'vitest'
import { redis } from '../../src/stores/redis/index.js'
import { describeOn } from '../servers/availability.js'
import { borrowRedis } from '../servers/redis.js'
import { describeEvents } from './event-cases.js'

describeOn(
  'redis',
  'on Redis',
  () => {
    let server: Awaited<ReturnType<typeof borrowRedis>>
    beforeAll(async () => {
      server = await borrowRedis()
    })
    afterAll(() => server.stop())

    describeEvents('the Redis store', () => redis(server.url))
  },
  { own: false },
)
