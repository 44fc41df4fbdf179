import { Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { Connection, Push } from '../../src/contract/store.js'
import { Holdfast, type HoldfastOptions } from '../../src/index.js'
import { type RedisClient, type RedisOptions, redis } from '../../src/stores/redis/index.js'
import { eventually, inTime, now, rejectsWith, throwsWith } from '../../src/testing/conformance/checks.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'

describeOn('redis', 'the Redis store', () => {
  let server: RedisServer
  const endings: (() => unknown)[] = []
  beforeAll(async () => {
    server = await startRedis()
  })
  afterEach(async () => {
    for (const end of endings.splice(0).reverse()) await end()
    await server.cli('flushall')
  })
  afterAll(() => server.stop())

  const client = (from: string | RedisClient = server.url, options: HoldfastOptions = {}): Holdfast => {
    const locks = new Holdfast(redis(from), options)
    endings.push(() => locks.close({ drain: 0 }))
    return locks
  }
  const raw = (
    options: RedisOptions = {},
    push: (news: Push) => void = () => {},
    id = 'client:1',
  ): Connection => {
    const connection = redis(server.url, options).connect({ id, space: 'default', push })
    endings.push(() => connection.close())
    return connection
  }

  const OWN: Record<
    string,
    () => Promise<{ client: RedisClient; isAlive(): Promise<unknown>; end(): unknown }>
  > = {
    'ioredis with a key prefix and automatic pipelines': async () => {
      const own = new Redis(server.port, { keyPrefix: 'app[1]:', enableAutoPipelining: true })
      return { client: own, isAlive: () => own.ping(), end: () => own.disconnect() }
    },
    'node-redis with RESP 3': async () => {
      const own = createClient({ url: server.url, RESP: 3 })
      await own.connect()
      return { client: own, isAlive: () => own.ping(), end: () => own.destroy() }
    },
    'node-redis with a key prefix': async () => {
      const own = createClient({ url: server.url, keyPrefix: 'app[1]:' })
      await own.connect()
      return { client: own, isAlive: () => own.ping(), end: () => own.destroy() }
    },
    'node-redis with RESP 2': async () => {
      const own = createClient({ url: server.url, RESP: 2 })
      await own.connect()
      return { client: own, isAlive: () => own.ping(), end: () => own.destroy() }
    },
    iovalkey: async () => {
      const own = new Valkey(server.port)
      return { client: own, isAlive: () => own.ping(), end: () => own.disconnect() }
    },
  }

  it.each(Object.entries(OWN))(
    'works on a client that the user has, and leaves it open: %s',
    async (_, make) => {
      const own = await make()
      endings.push(own.end)
      // No pulse comes in time: what comes was told.
      const [one, two] = [1, 2].map(() => client(own.client, { presence: '10m' })) as [Holdfast, Holdfast]
      const hold = await one.mutex('a {strange} *name').acquire({ lease: '10m' })
      const next = two.mutex('a {strange} *name').acquire({ lease: '10m' })
      const waiting = async (): Promise<number> => {
        for await (const line of one.inspect({ prefix: 'a {str' })) return line.waiters.length
        return 0
      }
      await eventually('one in line', async () => (await waiting()) === 1)
      expect(await hold.release()).toBe(true)
      await (await inTime('the next one', next)).release()
      await Promise.all([one.close(), two.close()])
      expect(await own.isAlive()).toBe('PONG')
      await eventually('its connection is the only one left', async () =>
        (await server.cli('client', 'list')).split('\n').every((line) => !line.includes('sub=1')),
      )
    },
  )

  it('keeps one connection for commands and one for messages, whatever the number of locks', async () => {
    const locks = client()
    const holds = await Promise.all(
      Array.from({ length: 200 }, (_, index) => locks.mutex(`lock ${index}`).acquire({ lease: '1m' })),
    )
    await eventually('it listens', async () => (await server.cli('pubsub', 'channels')).includes('client'))
    const count = async (type: string) =>
      (await server.cli('client', 'list', 'type', type)).split('\n').length
    // The other one is that of redis-cli itself. The server may not have heard yet that those of the last case are closed.
    await expect.poll(async () => [await count('normal'), await count('pubsub')]).toEqual([2, 1])
    await Promise.all(holds.map((hold) => hold.release()))
  })

  it('leaves no key for ever, and none of an unused resource for longer than its retention', async () => {
    const lasting = raw({ retention: '1m' })
    const askedAt = now()
    for (const id of ['client:1:1', 'client:1:2'])
      await lasting.claim(claimOf('door', id, { leaseMs: 30_000, presenceMs: 30_000 }))
    const left = Number(await server.cli('pttl', 'holdfast:default:{door}'))
    expect(left).toBeGreaterThan(30_000 + 60_000 - (now() - askedAt))
    expect(left).toBeLessThan(30_000 + 3 * 60_000)
    for (const id of ['client:1:1', 'client:1:2']) await lasting.release('door', id)
    expect(await server.cli('hgetall', 'holdfast:default:{door}')).toMatch(/^#\n\d+ \d+$/)
    const brief = raw({ retention: '1s' }, () => {}, 'client:2')
    await brief.claim(claimOf('window', 'client:2:1', { leaseMs: 500, presenceMs: 500 }))
    await brief.release('window', 'client:2:1')
    await eventually('no key of it', async () => (await server.cli('keys', '*window*')) === '')
  })

  it('keeps a counter that is ahead of the clock until the clock has passed it', async () => {
    const connection = raw({ retention: '1s' })
    const askedAt = now()
    const seen = await connection.claim(claimOf('window', 'client:1:1', { leaseMs: 100 }))
    const floor = (seen.status === 'granted' ? seen.fence : Number.NaN) + 30_000_000
    await connection.release('window', 'client:1:1')
    await connection.claim(claimOf('window', 'client:1:2', { leaseMs: 100, floor }))
    const own = await connection.claim(claimOf('door', 'client:1:3', { leaseMs: 100 }))
    const first = (own.status === 'granted' ? own.fence : Number.NaN) + 600_000_000
    const beat = { resource: 'door', id: 'client:1:3', leaseMs: 60_000, presenceMs: 100 }
    await connection.pulse([{ ...beat, fences: { first, count: 60_000_000 } }])
    await connection.pulse([beat])
    for (const [resource, id] of [['window', 'client:1:2'] as const, ['door', 'client:1:3'] as const])
      await connection.release(resource, id)
    const left = async (name: string) => Number(await server.cli('pttl', `holdfast:default:{${name}}`))
    expect(await left('window')).toBeGreaterThan(31_000 - (now() - askedAt))
    expect(await left('door')).toBeGreaterThan(661_000 - (now() - askedAt))
  })

  it('renews 10,000 holds in a few commands', async () => {
    const connection = raw()
    const names = Array.from({ length: 10_000 }, (_, index) => `lock ${index}`)
    await Promise.all(names.map((name) => connection.claim(claimOf(name, `client:1:${name}`))))
    await server.cli('config', 'resetstat')
    const beats = names.map((resource) => ({
      resource,
      id: `client:1:${resource}`,
      leaseMs: 60_000,
      presenceMs: 60_000,
    }))
    const { maxBeats } = redis(server.url).capabilities
    for (let start = 0; start < beats.length; start += maxBeats)
      for (const reply of await connection.pulse(beats.slice(start, start + maxBeats)))
        expect(reply.status).toBe('held')
    const calls = /cmdstat_evalsha:calls=(\d+)/.exec(await server.cli('info', 'commandstats'))?.[1]
    expect(Number(calls)).toBeLessThanOrEqual(10)
  })

  it('goes on with what a release left of a long line', async () => {
    const connection = raw()
    for (let place = 0; place < 300; place++) await connection.claim(claimOf('door', `client:1:${place}`))
    // Out of the middle, from the end, and the holder.
    for (let place = 1; place < 300; place += 2) await connection.release('door', `client:1:${place}`)
    for (let place = 0; place < 300; place += 2)
      expect(await connection.release('door', `client:1:${place}`)).toBe(true)
    expect(await server.cli('hkeys', 'holdfast:default:{door}')).toBe('#')
  })

  it('tells those that lack a permission what is missing', async () => {
    await server.cli('acl', 'setuser', 'ann', 'on', '>secret', '~holdfast:*', '+@all', 'resetchannels')
    const url = `redis://ann:secret@${server.address}`
    const locks = client(url)
    // A free lock may be granted before the refusal is known.
    await eventually('the refusal', async () => {
      const outcome = await locks
        .mutex('door')
        .acquire({ wait: '2s' })
        .then(
          async (hold) => {
            await hold.release()
            return ''
          },
          (error: Error) => error.message,
        )
      return /lacks a permission/.test(outcome)
    })
    const wrong = await rejectsWith('STORE_UNAVAILABLE', Holdfast.open(`redis://ann:wrong@${server.address}`))
    expect(wrong.message).toMatch(/WRONGPASS|password/)
    expect(wrong.retryable).toBe(false)
  })

  it('fails only the call whose key holds something else', async () => {
    await server.cli('set', 'holdfast:default:{door}', 'something else')
    const locks = client()
    const [door, window] = [locks.mutex('door').acquire(), locks.mutex('window').acquire()]
    const error = await rejectsWith('STORE_UNAVAILABLE', door)
    expect(error.message).toMatch(/holds something else/)
    expect(await (await window).release()).toBe(true)
  })

  it('says within the time-out that nobody is there', async () => {
    const locks = new Holdfast(redis('redis://127.0.0.1:1'), { storeTimeout: 600 })
    // If this process stands still for that time, it has not heard why.
    await eventually('the reason', async () => {
      const error = await rejectsWith('STORE_UNAVAILABLE', locks.mutex('door').acquire())
      return /ECONNREFUSED/.test(error.message)
    })
    await locks.close()
  })

  it('refuses what makes no sense before anything is sent', () => {
    for (const url of [
      'redis://h:99999999',
      'redis+sentinel://h',
      'redis://h/x',
      'redis://h?color=red',
      'redis://h?replicas=',
      'redis://h?replicas=-1',
      'redis://h?replicas=one',
      'redis://h?replicas=1&replicaTimeout=2',
      'redis://h?retention=1ms',
      'redis://h?retention=5',
      'redis+x://h',
    ])
      throwsWith('INVALID_ARGUMENT', () => redis(url))
    const options = [
      { prefix: 'a{b' },
      { replicas: 1.5 },
      { driver: 'jedis' as never },
      { retention: '1ms' as const },
    ]
    for (const each of options) throwsWith('INVALID_ARGUMENT', () => redis('redis://h', each))
    throwsWith('INVALID_ARGUMENT', () => redis({} as never))
    throwsWith('INVALID_ARGUMENT', () => redis(undefined as never))
  })

  it('gives nothing out without the replicas that were asked for, and leaves nothing behind', async () => {
    const locks = client()
    const impatient = new Holdfast(redis(server.url, { replicas: 1, replicaTimeout: 20 }), {
      storeTimeout: 1500,
    })
    endings.push(() => impatient.close({ drain: 0 }))
    // If this process stands still for that time, it has not heard why.
    await eventually('the reason', async () => {
      const error = await rejectsWith('STORE_UNAVAILABLE', impatient.mutex('door').acquire({ lease: '10m' }))
      return /replicas/.test(error.message)
    })
    // What it no longer waited for is given back a moment later.
    await eventually('nothing', async () => {
      for await (const _ of locks.inspect()) return false
      return true
    })
  })
})
