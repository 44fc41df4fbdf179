import { Cluster, Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import { createClient, createCluster, createSentinel } from 'redis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { systemEnv } from '../../src/base/env.js'
import type { Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/index.js'
import type { LockOrder } from '../../src/primitives/options.js'
import { redis } from '../../src/stores/redis/index.js'
import { inTime } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { startRedis } from '../servers/redis.js'
import { startRedisCluster } from '../servers/redis-cluster.js'
import { startRedisSentinel } from '../servers/redis-sentinel.js'
import type { OwnClient, Place } from './redis/conformance.js'

const ROUNDS = Number(process.env['HOLDFAST_ROUNDS'] ?? 2)
const LEASE_MS = 60_000
const DRIVERS = ['ioredis', 'redis', 'iovalkey'] as const

describeFirstRequests('one server', startRedis, {
  ioredis({ url }) {
    const client = new Redis(url)
    return { client, end: () => client.disconnect() }
  },
  async redis({ url }) {
    const client = createClient({ url })
    return { client, end: await connected(client) }
  },
  iovalkey({ url }) {
    const client = new Valkey(url)
    return { client, end: () => client.disconnect() }
  },
})

describeFirstRequests('Sentinels', startRedisSentinel, {
  ioredis({ name, sentinels }) {
    const client = new Redis({ name, sentinels: sentinels.map(({ port }) => ({ host: '127.0.0.1', port })) })
    return { client, end: () => client.disconnect() }
  },
  async redis({ name, sentinels }) {
    const sentinelRootNodes = sentinels.map(({ port }) => ({ host: '127.0.0.1', port }))
    const client = createSentinel({ name, sentinelRootNodes })
    return { client, end: await connected(client) }
  },
})

describeFirstRequests('a Cluster', startRedisCluster, {
  ioredis({ nodes }) {
    const client = new Cluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
    return { client, end: () => client.disconnect() }
  },
  async redis({ nodes }) {
    const client = createCluster({ rootNodes: nodes.map(({ url }) => ({ url })) })
    return { client, end: await connected(client) }
  },
})

/** A fresh client for each scene, in a space that nobody has used. */
function describeFirstRequests<P extends Place>(
  title: string,
  start: () => Promise<P>,
  own: Record<string, (place: P) => OwnClient | Promise<OwnClient>>,
): void {
  describeOn('redis', `the first requests of a fresh client in a fresh space, on ${title}`, () => {
    let place: P
    beforeAll(async () => {
      place = await start()
    })
    afterAll(() => place.stop())

    it.each(DRIVERS)('are served in order, through a URL and %s', { timeout: 600_000 }, async (driver) => {
      for (let round = 0; round < ROUNDS; round++) await playAll(() => redis(place.url, { driver }))
    })

    it.each(Object.entries(own))(
      'are served in order, through a client of the user: %s',
      { timeout: 600_000 },
      async (_, make) => {
        for (let round = 0; round < ROUNDS; round++) {
          const { client, end } = await make(place)
          try {
            await playAll(() => redis(client))
          } finally {
            await end()
          }
        }
      },
    )

    if (title !== 'one server')
      it('are served in order where replicas are waited for', { timeout: 600_000 }, async () => {
        for (let round = 0; round < ROUNDS; round++)
          for (const driver of DRIVERS) await readersAroundWriter(redis(place.url, { driver, replicas: 1 }))
      })
  })
}

async function playAll(store: () => Store): Promise<void> {
  await readersAroundWriter(store())
  for (const order of ['strict', 'cohort'] as const) await writers(store(), order)
  await tryBehindWriter(store())
}

/** Five readers, a writer, five readers, all in one tick. */
async function readersAroundWriter(store: Store): Promise<void> {
  await using locks = new Holdfast(store, { space: systemEnv.id(), order: 'strict' })
  const lock = locks.readWrite('page')
  const served: string[] = []
  const asked = Array.from('rrrrrwrrrrr', (kind, index) => `${kind}${index}`)
  const all = asked.map((name) =>
    (name.startsWith('r') ? lock.read : lock.write).run(() => void served.push(name), { lease: LEASE_MS }),
  )
  await inTime('all of them', Promise.all(all))
  // Readers come in together, so only their side of the writer is told.
  const at = served.indexOf('w5')
  const sides = [served.slice(0, at), served.slice(at + 1)].map((side) => side.sort())
  expect(sides).toEqual([asked.slice(0, 5).sort(), asked.slice(6).sort()])
}

async function writers(store: Store, order: LockOrder): Promise<void> {
  await using locks = new Holdfast(store, { space: systemEnv.id(), order })
  const served: number[] = []
  // More than one call takes.
  const all = Array.from({ length: 20 }, (_, number) =>
    locks.mutex('door').run(() => void served.push(number), { lease: LEASE_MS }),
  )
  await inTime('all of them', Promise.all(all))
  expect(served).toEqual([...served.keys()])
}

/** A reader holds, a writer waits: a reader that does not wait gets nothing. */
async function tryBehindWriter(store: Store): Promise<void> {
  await using locks = new Holdfast(store, { space: systemEnv.id() })
  const lock = locks.readWrite('page')
  const isOver = deferred<void>()
  const reader = lock.read.run(() => isOver.promise, { lease: LEASE_MS })
  const writer = lock.write.run(() => {}, { lease: LEASE_MS })
  expect(await inTime('the answer', lock.read.tryAcquire({ lease: LEASE_MS }))).toBeNull()
  isOver.resolve()
  await inTime('the two', Promise.all([reader, writer]))
}

/** Connects a client of node-redis; how to end it. */
async function connected(client: {
  on(event: 'error', listener: () => void): unknown
  connect(): Promise<unknown>
  destroy(): unknown
}): Promise<() => unknown> {
  client.on('error', () => {})
  await client.connect()
  return () => client.destroy()
}
