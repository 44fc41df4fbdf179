import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Env, systemEnv } from '../../src/base/env.js'
import type { ClaimRequest, Connection } from '../../src/contract/store.js'
import { redis } from '../../src/stores/redis/index.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { TcpProxy } from '../servers/proxy.js'
import { type RedisServer, startRedis } from '../servers/redis.js'

const KEY = 'holdfast:default:{door}'
const HOUR_MS = 3_600_000

// What the short paths of the batch script must leave to the general path: each could get one of these wrong.
describeOn('redis', 'the short paths of a Redis line', () => {
  let server: RedisServer
  let connection: Connection
  let wallMs: number
  let granted: string[]
  let heirs: readonly string[]
  const clock: Env = { ...systemEnv, wallMs: () => wallMs }
  beforeAll(async () => {
    server = await startRedis()
  })
  beforeEach(async () => {
    wallMs = Date.now()
    granted = []
    heirs = []
    connection = redis(server.url, { env: clock }).connect({
      id: 'client:1',
      space: 'default',
      push: (news) => {
        if (news.type !== 'granted') return
        granted.push(news.id)
        heirs = news.heirs ?? []
      },
    })
    await connection.read('listens from here on', true)
  })
  afterEach(async () => {
    await connection.close()
    await server.cli('flushall')
  })
  afterAll(() => server.stop())

  const ask = (id: string, leaseMs: number, presenceMs = leaseMs, block = 1) =>
    connection.claim(claimOf('door', id, { leaseMs, presenceMs, block }))
  const view = async () => {
    for await (const line of connection.inspect({ prefix: '', resource: 'door' })) return line.claims
    return []
  }

  it('a release after the lease finds nothing, and the next claim holds all the same', async () => {
    await ask('c:1', 100)
    await ask('c:2', 1000)
    await ask('c:3', 1000)
    wallMs += 101
    expect(await connection.release('door', 'c:1')).toBe(false)
    await eventually('the second is told', () => granted.includes('c:2'))
  })

  it('a release after the lease finds nothing also where nobody waits', async () => {
    await ask('c:1', 100)
    wallMs += 101
    expect(await connection.release('door', 'c:1')).toBe(false)
    expect(await ask('c:2', 1000)).toMatchObject({ status: 'granted' })
    expect(await connection.release('door', 'c:2')).toBe(true)
  })

  it('a lapsed waiter is skipped', async () => {
    await ask('c:1', 1000)
    await ask('c:2', 100)
    await ask('c:3', 1000)
    wallMs += 101
    expect(await connection.release('door', 'c:1')).toBe(true)
    await eventually('the third is told', () => granted.includes('c:3'))
    expect(granted).toEqual(['c:3'])
    expect((await view()).map(({ id }) => id)).toEqual(['c:3'])
  })

  it('a claim behind a lapsed waiter is the next', async () => {
    await ask('c:1', 1000)
    await ask('c:2', 100)
    wallMs += 101
    expect(await ask('c:3', 1000)).toMatchObject({ status: 'waiting', isNext: true })
  })

  it('a waiter with a maxHold holds no longer than that', async () => {
    await ask('c:1', 1000)
    await connection.claim(claimOf('door', 'c:2', { leaseMs: 1000, presenceMs: 1000, maxHoldMs: 100 }))
    await ask('c:3', 1000)
    await connection.release('door', 'c:1')
    expect((await view())[0]).toMatchObject({ id: 'c:2', expiresInMs: 100 })
  })

  it('a block that was asked for is given whole', async () => {
    await ask('c:1', 1000)
    await ask('c:2', 1000, 1000, 4)
    await ask('c:3', 1000)
    await ask('c:4', 1000)
    // The clock stands still, so that only the counter moves the fences.
    await connection.release('door', 'c:1')
    // The fences that follow are its own.
    expect(heirs).toEqual([])
    const first = (await view())[0]?.fence ?? 0
    await connection.release('door', 'c:2')
    expect((await view())[0]?.fence).toBeGreaterThanOrEqual(first + 4)
  })

  it.each(['a release', 'one more waiter', 'the first waiter gives up'])(
    'a clock that is set back moves no deadline: %s',
    async (what) => {
      await ask('c:1', 1000)
      await ask('c:2', 1000)
      await ask('c:3', 1000)
      wallMs -= 10_000
      if (what === 'a release') await connection.release('door', 'c:1')
      else if (what.startsWith('the first')) await connection.release('door', 'c:2')
      else await ask('c:4', 1000)
      for (const { expiresInMs } of await view()) expect(expiresInMs).toBeLessThanOrEqual(1000)
      wallMs += 1001
      expect(await ask('c:5', 1000)).toMatchObject({ status: 'granted' })
    },
  )

  it('the answer to a release tells of the next claim of the same client, and no message does', async () => {
    await ask('c:1', 1000)
    await ask('c:2', 1000)
    await server.cli('config', 'resetstat')
    expect(await connection.release('door', 'c:1')).toBe(true)
    expect(granted).toEqual(['c:2'])
    expect(await server.cli('info', 'commandstats')).not.toMatch(/cmdstat_publish/)
  })

  it('if that answer is lost, the waiters are told to ask', async () => {
    const proxy = await TcpProxy.start(server.port)
    const news: string[] = []
    const cutOff = redis(`redis://127.0.0.1:${proxy.port}`).connect({
      id: 'client:2',
      space: 'default',
      push: ({ type }) => news.push(type),
    })
    try {
      await cutOff.read('listens from here on', true)
      for (const id of ['c:1', 'c:2', 'c:3']) await cutOff.claim(claimOf('door', id))
      proxy.mode = 'lose replies'
      const release = Promise.resolve(cutOff.release('door', 'c:1')).then(
        () => 'answered',
        () => [...news],
      )
      await eventually('it is released', async () => (await view())[0]?.id === 'c:2')
      proxy.mode = 'refuse'
      // A new subscription, which also makes them ask, is not possible before that.
      expect(await release).toEqual(['gap'])
    } finally {
      await cutOff.close()
      await proxy.stop()
    }
  })

  describe('the claims right behind the new holder are named', () => {
    it('in order, and the fences that follow are kept for them', async () => {
      for (const n of [1, 2, 3, 4, 5]) await ask(`c:${n}`, 1000)
      await connection.release('door', 'c:1')
      expect([granted, heirs]).toEqual([['c:2'], ['c:3', 'c:4', 'c:5']])
      // The clock stands still, so that only the counter moves the fences.
      const first = (await view())[0]?.fence ?? 0
      await connection.release('door', 'c:2')
      expect((await view())[0]?.fence).toBeGreaterThan(first + 3)
    })

    it('to their own client, by a message', async () => {
      const other = redis(server.url, { env: clock }).connect({
        id: 'other',
        space: 'default',
        push: () => {},
      })
      try {
        await other.claim(claimOf('door', 'o:1'))
        await ask('c:2', 1000)
        await ask('c:3', 1000)
        await other.release('door', 'o:1')
        await eventually('the message', () => granted.length > 0)
        expect([granted, heirs]).toEqual([['c:2'], ['c:3']])
      } finally {
        await other.close()
      }
    })

    it('but not of a semaphore, which is not passed on', async () => {
      const size = { permits: 1, capacity: 1 }
      for (const n of [1, 2, 3]) await connection.claim(claimOf('door', `c:${n}`, size))
      await connection.release('door', 'c:1')
      expect([granted, heirs]).toEqual([['c:2'], []])
    })

    it('at most sixteen', async () => {
      for (let n = 1; n <= 20; n++) await ask(`c:${n}`, 1000)
      await connection.release('door', 'c:1')
      expect(heirs).toEqual(Array.from({ length: 16 }, (_, index) => `c:${index + 3}`))
    })

    const others: Record<string, () => Partial<ClaimRequest>> = {
      'one that has lapsed': () => ({ leaseMs: 100, presenceMs: 100 }),
      'a reader': () => ({ permits: 1 }),
      'one that asks for a block': () => ({ block: 2 }),
      'one with a maxHold': () => ({ maxHoldMs: 500 }),
      'one that tells something else of itself': () => ({ info: 'somebody else' }),
      'one that has seen a fence above': () => ({ floor: Date.now() * 1000 + 5_000_000 }),
    }
    for (const [who, request] of Object.entries(others))
      it(`but nobody from ${who} on`, async () => {
        for (const n of [1, 2, 3]) await ask(`c:${n}`, 1000)
        await connection.claim(claimOf('door', 'c:4', { leaseMs: 1000, presenceMs: 1000, ...request() }))
        await ask('c:5', 1000)
        wallMs += 101
        await connection.release('door', 'c:1')
        expect([granted, heirs]).toEqual([['c:2'], ['c:3']])
      })

    it('but nobody from another client on', async () => {
      const other = redis(server.url, { env: clock }).connect({
        id: 'other',
        space: 'default',
        push: () => {},
      })
      try {
        for (const n of [1, 2, 3]) await ask(`c:${n}`, 1000)
        await other.claim(claimOf('door', 'o:4'))
        await ask('c:5', 1000)
        await connection.release('door', 'c:1')
        expect([granted, heirs]).toEqual([['c:2'], ['c:3']])
      } finally {
        await other.close()
      }
    })
  })

  it.each([
    ['the first waiter', 'c:2', ['c:1', 'c:3', 'c:4']],
    ['one in the middle', 'c:3', ['c:1', 'c:2', 'c:4']],
    ['the last one', 'c:4', ['c:1', 'c:2', 'c:3']],
  ])('%s gives up, and the others keep their places', async (_who, id, left) => {
    for (const n of [1, 2, 3, 4]) await ask(`c:${n}`, 1000)
    expect(await connection.release('door', id)).toBe(true)
    expect(await connection.release('door', id)).toBe(false)
    expect((await view()).map((claim) => claim.id)).toEqual(left)
    await ask('c:5', 1000)
    for (const [index, next] of [...left.slice(1), 'c:5'].entries()) {
      await connection.release('door', left[index] ?? '')
      expect(granted.at(-1)).toBe(next)
    }
  })

  it('the first waiter gives up after the hold has lapsed, and the next one holds', async () => {
    await ask('c:1', 100)
    for (const n of [2, 3, 4]) await ask(`c:${n}`, 1000)
    wallMs += 101
    expect(await connection.release('door', 'c:2')).toBe(true)
    // The same call has promoted it: there was none since.
    expect((await view()).map(({ id, fence }) => [id, fence !== null])).toEqual([
      ['c:3', true],
      ['c:4', false],
    ])
  })

  it('a lapsed waiter has no place to give up', async () => {
    await ask('c:1', 1000)
    await ask('c:2', 100)
    await ask('c:3', 1000)
    wallMs += 101
    expect(await connection.release('door', 'c:2')).toBe(false)
    expect((await view()).map(({ id }) => id)).toEqual(['c:1', 'c:3'])
  })

  it('a claim that is released before its client is subscribed does not join the line', async () => {
    await ask('c:1', 1000)
    const young = redis(server.url, { env: clock }).connect({ id: 'young', space: 'default', push: () => {} })
    try {
      const asked = young.claim(claimOf('door', 'y:1'))
      expect(await young.release('door', 'y:1')).toBe(false)
      await asked
      expect((await view()).map(({ id }) => id)).toEqual(['c:1'])
    } finally {
      await young.close()
    }
  })

  it.each(['adopt', 'steal'] as const)('%s works as the first claim of a client', async (mode) => {
    const held = await ask('c:1', 1000)
    const fence = held.status === 'granted' ? held.fence : 0
    const young = redis(server.url, { env: clock }).connect({ id: 'young', space: 'default', push: () => {} })
    try {
      const adopts = mode === 'adopt' ? { adopts: { id: 'c:1', fence } } : {}
      expect(await young.claim(claimOf('door', 'y:1', { mode, ...adopts }))).toMatchObject({
        status: 'granted',
      })
      expect((await view()).map(({ id }) => id)).toEqual(['y:1'])
    } finally {
      await young.close()
    }
  })

  it('the key lives as long as the longest waiter', async () => {
    await ask('c:1', 1000)
    for (const [index, hours] of [1, 2, 3].entries()) {
      await ask(`c:${index + 2}`, 1000, hours * HOUR_MS)
      expect(Number(await server.cli('pttl', KEY))).toBeGreaterThan(hours * HOUR_MS)
    }
  })
})
