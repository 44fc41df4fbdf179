import { once } from 'node:events'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { ExecutionError, Lock } from '../../src/redlock/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'
import { openRedlock, reasonOf, waiting } from './site.js'

describeOn('redis', 'a lock of holdfast/redlock', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server?.stop())

  it('is not renewed: it ends with its duration, for its holder at its expiration', async () => {
    const redlock = openRedlock(server)
    const before = Date.now()
    const lock = await redlock.acquire(['lapse'], 2000)
    const { expiration, signal } = lock
    expect(expiration).toBeGreaterThan(before + 1900)
    expect(expiration).toBeLessThanOrEqual(Date.now() + 2000)
    await once(signal, 'abort')
    // Timers are a little late, never early.
    expect(Date.now()).toBeGreaterThanOrEqual(expiration)
    expect(signal.reason).toMatchObject({ code: 'HOLD_LOST' })
    const next = await openRedlock(server).acquire(['lapse'], 1000)
    expect(Date.now()).toBeGreaterThanOrEqual(before + 2000)
    expect(next.fence).toBeGreaterThan(lock.fence)
    expect(await reasonOf(lock.release())).toBeInstanceOf(ExecutionError)
  })

  it('lasts its whole duration after a wait in line', async () => {
    const [one, two] = [openRedlock(server), openRedlock(server)]
    const first = await one.acquire(['hand-off'], 9000)
    const second = two.acquire(['hand-off'], 9000)
    await waiting(one, 'hand-off', 1)
    // The place in line is as old as that, and so would the lease be.
    await new Promise((resolve) => setTimeout(resolve, 2500))
    await first.release()
    const granted = await second
    expect(granted.expiration - Date.now()).toBeGreaterThan(9000 * 0.95 * 0.99 - 1000)
    const left = Number(await leaseLeftMs(server, 'hand-off'))
    expect(left).toBeGreaterThan(granted.expiration - Date.now() - 1)
    await granted.release()
  })

  it('extend replaces the duration by a longer one', async () => {
    const redlock = openRedlock(server)
    const lock = await redlock.acquire(['longer'], 5000)
    const extended = await lock.extend(60_000)
    expect(extended.expiration).toBeGreaterThan(Date.now() + 55_000)
    expect(await leaseLeftMs(server, 'longer')).toBeGreaterThan(55_000)
    expect(extended).toMatchObject({ value: lock.value, resources: ['longer'], fence: lock.fence })
    await extended.release()
  })

  it('extend replaces the duration by a shorter one', async () => {
    const redlock = openRedlock(server)
    const lock = await redlock.acquire(['shorter'], 60_000)
    const extended = await lock.extend(1000)
    expect(extended.expiration).toBeLessThanOrEqual(Date.now() + 1000)
    await once(extended.signal, 'abort')
    const next = await redlock.acquire(['shorter'], 5000)
    expect(next.fence).toBeGreaterThan(lock.fence)
    expect(await reasonOf(extended.release())).toBeInstanceOf(ExecutionError)
    await next.release()
  })

  it('a lock that was shortened can be extended again', async () => {
    const redlock = openRedlock(server)
    const lock = await redlock.acquire(['again'], 5000)
    const short = await lock.extend(3000)
    const long = await short.extend(10_000)
    const { signal } = long
    await new Promise((resolve) => setTimeout(resolve, 3500))
    expect(signal.aborted).toBe(false)
    await long.release()
  })

  it('takes a driftFactor above ours off its expiration', async () => {
    const redlock = openRedlock(server, { driftFactor: 0.5 })
    const lock = await redlock.acquire(['drift'], 60_000)
    expect(lock.expiration).toBeLessThan(Date.now() + 31_000)
    const other = await redlock.acquire(['drift:2'], 60_000, { driftFactor: 0 })
    expect(other.expiration).toBeGreaterThan(Date.now() + 55_000)
  })

  it('a release at the end of a block, unless it was released before', async () => {
    const redlock = openRedlock(server)
    {
      await using lock = await redlock.acquire('block', 5000)
      expect(lock.resources).toEqual(['block'])
    }
    {
      await using lock = await redlock.acquire('block', 5000, { retryCount: 0 })
      await lock.release()
    }
    const late = async (): Promise<void> => {
      await using lock = await redlock.acquire('block', 1000, { retryCount: 0 })
      await once(lock.signal, 'abort')
    }
    expect(await reasonOf(late())).toBeInstanceOf(ExecutionError)
  })

  it('has a fence for each of several resources', async () => {
    const redlock = openRedlock(server)
    const lock = await redlock.acquire(['y', 'x'], 5000)
    expect(lock.resources).toEqual(['y', 'x'])
    expect([...lock.fences.keys()].sort()).toEqual(['x', 'y'])
    expect(() => lock.fence).toThrow('lock.fences')
    await lock.release()
    const next = await redlock.acquire('x', 5000)
    expect(next.fence).toBeGreaterThan(lock.fences.get('x') ?? Infinity)
  })

  it('is told that it was broken, and then can be neither extended nor released', async () => {
    const redlock = openRedlock(server)
    const lock = await redlock.acquire(['broken', 'kept'], 60_000)
    const aborted = once(lock.signal, 'abort')
    await redlock.locks.breakHold('broken')
    await aborted
    const error = await reasonOf(lock.extend(1000))
    expect(error).toBeInstanceOf(ExecutionError)
    const released = (await reasonOf(lock.release())) as ExecutionError
    const [stats] = await Promise.all(released.attempts)
    const [reason] = stats?.votesAgainst.values() ?? []
    expect(reason?.message).toBe('The operation was applied to: 1 of the 2 requested resources.')
    await redlock.acquire(['broken', 'kept'], 1000, { retryCount: 0 })
  })

  it('of two releases at once one succeeds', async () => {
    const lock = await openRedlock(server).acquire(['both'], 5000)
    const outcomes = await Promise.allSettled([lock.release(), lock.release()])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })

  it('is the mutex of that name in the same space', async () => {
    const locks = new Holdfast(redis(server.url), { space: 'shop' })
    const lock = await openRedlock(server, { space: 'shop' }).acquire(['order'], 60_000)
    expect(await locks.mutex('order').tryAcquire()).toBe(null)
    await lock.release()
    expect(await locks.mutex('order').tryAcquire()).not.toBe(null)
    await locks.close()
  })

  it('that was made by hand cannot be released', async () => {
    const redlock = openRedlock(server)
    const lock = new Lock(redlock, ['a'], 'value', [], Date.now() + 1000)
    expect(await reasonOf(lock.release())).toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})

/** What the server still has of a lock of the default space. */
async function leaseLeftMs(server: RedisServer, resource: string): Promise<number> {
  const locks = new Holdfast(redis(server.url))
  try {
    for await (const { name, holders } of locks.inspect({ prefix: resource }))
      if (name === resource) return (holders[0]?.expires.getTime() ?? 0) - Date.now()
    return 0
  } finally {
    await locks.close()
  }
}
