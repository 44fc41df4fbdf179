import { afterAll, beforeAll } from 'vitest'
import { redis } from '../../src/stores/redis/index.js'
import { describeOn } from '../servers/availability.js'
import { borrowRedis } from '../servers/redis.js'
import { runOn } from './run-on.js'
import { siteOn } from './site.js'

describeOn(
  'redis',
  'Web Locks on Redis',
  () => {
    let server: Awaited<ReturnType<typeof borrowRedis>>
    beforeAll(async () => {
      server = await borrowRedis()
    })
    afterAll(() => server?.stop())
    // A store value for each client: connections of its own, as in another process.
    runOn('redis', () => siteOn(() => redis(server.url), { url: server.url }), { part: 0, of: 6 })
  },
  { own: false },
)
