import { afterAll, beforeAll } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import { memcached } from '../../src/stores/memcached/index.js'
import { describeOn } from '../servers/availability.js'
import { type MemcachedProcess, startMemcached } from '../servers/memcached.js'
import { MEMCACHED_LIMITS, MEMCACHED_SKIPS } from '../stores/memcached/skips.js'
import { runCases, runStrictCases } from './run-cases.js'

describeOn('memcached', 'memcached', () => {
  let servers: MemcachedProcess[]
  beforeAll(async () => {
    servers = await Promise.all([startMemcached(), startMemcached()])
  })
  afterAll(() => Promise.all(servers.map((server) => server.stop())))

  const subjectOn = (name: string, count: number) => ({
    name,
    ...MEMCACHED_LIMITS,
    async open() {
      // A prefix of its own for each case.
      const prefix = `t-${systemEnv.id()}`
      const addresses = servers.slice(0, count).map(({ address }) => address)
      return {
        store: () => memcached(addresses.join(','), { prefix }),
        url: `memcached://${addresses.join(',')}?prefix=${prefix}`,
        dispose: async () => {},
      }
    },
  })
  runCases(subjectOn('memcached', 1), { part: 1, of: 11 }, MEMCACHED_SKIPS)
  runStrictCases(subjectOn('memcached', 1), { part: 3, of: 19 }, MEMCACHED_SKIPS)
  runCases(subjectOn('two memcached servers', 2), { part: 2, of: 29 }, MEMCACHED_SKIPS)
})
