import { afterAll, beforeAll } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import { memcached } from '../../src/stores/memcached/index.js'
import { describeOn } from '../servers/availability.js'
import { type MemcachedProcess, startMemcached } from '../servers/memcached.js'
import { runCases, runStrictCases, type Skips } from './run-cases.js'

const SKIPS: Skips = {
  '10000 waiters of one process make no call each while they wait, and are served in order':
    'a line is one item of 1 MiB, with room for some 6,500 claims',
}

describeOn('memcached', 'memcached', () => {
  let servers: MemcachedProcess[]
  beforeAll(async () => {
    servers = await Promise.all([startMemcached(), startMemcached()])
  })
  afterAll(() => Promise.all(servers.map((server) => server.stop())))

  const subjectOn = (name: string, count: number) => ({
    name,
    fixedFences: 'a server may evict single lines, so it is no member of a quorum',
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
  runCases(subjectOn('memcached', 1), { part: 1, of: 9 }, SKIPS)
  runStrictCases(subjectOn('memcached', 1), { part: 3, of: 17 }, SKIPS)
  runCases(subjectOn('two memcached servers', 2), { part: 2, of: 23 }, SKIPS)
})
