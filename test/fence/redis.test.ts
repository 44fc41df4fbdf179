import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { redisFenceKey } from '../../src/fence/index.js'
import { describeOn } from '../servers/availability.js'
import { borrowRedis } from '../servers/redis.js'
import { openRedis } from './clients.mjs'
import { pausedWorkerIsRefused } from './paused.js'

const DRIVERS = ['ioredis', 'iovalkey', 'redis']

const OLD = 1_790_000_000_000_000
const NEW = 1_790_000_000_000_001

const title = 'a guarded write in Redis'
describeOn('redis', title, () => describe.each(DRIVERS)('through %s', cases), { own: false })

function cases(driver: string): void {
  let server: Awaited<ReturnType<typeof borrowRedis>>
  beforeAll(async () => {
    server = await borrowRedis()
  })
  afterAll(() => server.stop())

  const open = async () => {
    const redis = await openRedis(driver, server.url)
    onTestFinished(() => void redis.close())
    return { ...redis, key: `test:${process.pid}:${Math.random()}` }
  }

  it('takes newer and equal fences, and refuses older ones', async () => {
    const { guard, get, key, client } = await open()
    await guard.set(OLD, key, 'a')
    await guard.set(NEW, key, 'b')
    await guard.set(NEW, key, Buffer.from('c'))
    await expect(guard.set({ resource: 'r', fence: OLD }, key, 'late')).rejects.toMatchObject({
      code: 'STALE_FENCE',
      newestFence: NEW,
      resource: 'r',
    })
    expect(await get(key)).toBe('c')
    // As sent, not as Lua prints it.
    expect(await get(redisFenceKey(key))).toBe(String(NEW))
    expect(await client.ttl(redisFenceKey(key))).toBe(-1)
  })

  it('runs any script behind the check', async () => {
    const { guard, get, key } = await open()
    const script =
      "redis.call('APPEND', KEYS[2], ARGV[1])\nreturn {#KEYS, #ARGV, KEYS[1]} -- a comment at the end"
    const given = { keys: [key, `${key}:other`], arguments: ['x', 'y', 'z'] }
    expect(await guard.run(NEW, script, given)).toEqual([2, 3, key])
    await expect(guard.run(OLD, script, given)).rejects.toMatchObject({
      code: 'STALE_FENCE',
      newestFence: NEW,
    })
    expect(await get(`${key}:other`)).toBe('x')
    // The fence of a key is the same for all that write it.
    await expect(guard.set(OLD, key, 'x')).rejects.toMatchObject({ newestFence: NEW })
    await expect(guard.run(NEW, "return redis.error_reply('OWN trouble')", given)).rejects.toThrow(
      /OWN trouble/,
    )
    await expect(guard.run(NEW, 'return 1', { keys: [] })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  it('checks a resource', async () => {
    const { guard, key } = await open()
    await guard.check({ resource: key, fence: NEW })
    await guard.check({ resource: key, fence: NEW })
    await expect(guard.check({ resource: key, fence: OLD })).rejects.toMatchObject({ newestFence: NEW })
    await expect(guard.check({ resource: key, fence: NEW, isExclusive: false })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
  })

  it.each(['redisSet', 'redisScript'])('stops a worker that was paused: %s', async (kind) => {
    const { key, get } = await open()
    await pausedWorkerIsRefused({ kind, driver, url: server.url, key }, () => get(key))
  })
}

describe('the key of a fence', () => {
  it('is in the slot of the key it belongs to, and belongs to no other', () => {
    expect(redisFenceKey('order:42')).toBe('holdfast:fence:{order:42}')
    expect(redisFenceKey('{user:7}:cart')).toBe('holdfast:fence-of:{user:7}:cart')
    // Empty braces are no tag.
    expect(redisFenceKey('{}a')).toBe('holdfast:fence:{{}a}')
    expect(new Set(['a', '{a}', '{a}b', 'a{b}', '{}a'].map(redisFenceKey)).size).toBe(5)
  })
})
