import { once } from 'node:events'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { type Lock, LockError, type Options, Redlock } from '../../src/redlock/v4/index.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'
import { reasonOf } from './site.js'

describeOn('redis', 'holdfast/redlock/v4', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server?.stop())

  function open(options: Options = {}, url = server.url): Redlock {
    const client = new Redis(url, { maxRetriesPerRequest: 0 })
    client.on('error', () => {})
    onTestFinished(() => client.disconnect())
    const redlock = new Redlock([client], options)
    onTestFinished(() => redlock.locks.close({ drain: 0 }))
    return redlock
  }

  it('a lock has a fence and a signal, and ends with its duration', async () => {
    const redlock = open()
    const lock = await redlock.lock('a', 1500)
    const { signal, fence } = lock
    await once(signal, 'abort')
    const next = await redlock.lock(['a'], 5000)
    expect(next.fence).toBeGreaterThan(fence)
    expect(await reasonOf(lock.unlock())).toBeInstanceOf(LockError)
    await next.unlock()
  })

  it('calls back after the call, and once', async () => {
    const redlock = open()
    const calls: unknown[][] = []
    const lock = await new Promise<Lock>((resolve) => {
      const locking = redlock.lock('b', 5000, (...told) => {
        calls.push(told)
        resolve(told[1] as Lock)
      })
      expect(calls).toEqual([])
      expect(locking).toBeInstanceOf(Promise)
    })
    expect(calls).toEqual([[null, lock]])
    await new Promise<void>((resolve) => redlock.unlock(lock, () => resolve()))
  })

  it('a failure that a callback was told is not unhandled', async () => {
    const redlock = open({ retryCount: 0 })
    const lock = await redlock.lock('c', 60_000)
    const unhandled: unknown[] = []
    const note = (reason: unknown): void => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    const error = await new Promise((resolve) => void redlock.lock('c', 1000, resolve))
    expect(error).toMatchObject({ name: 'LockError', attempts: 1 })
    await new Promise(setImmediate)
    expect(unhandled).toEqual([])
    await lock.unlock()
  })

  it('a server that is gone is a clientError, and a LockError', async () => {
    const gone = await startRedis()
    onTestFinished(async () => void (await gone.stop()))
    const redlock = open({ retryCount: 0, storeTimeout: '1s' }, gone.url)
    const lock = await redlock.lock('d', 60_000)
    await gone.kill()
    const errors: unknown[] = []
    redlock.on('clientError', (error) => errors.push(error))
    const error = (await reasonOf(redlock.lock('e', 1000))) as LockError
    expect(error).toBeInstanceOf(LockError)
    expect(errors).toEqual([error.cause])
    expect(await reasonOf(lock.unlock())).toBeInstanceOf(LockError)
  })

  it('is released at the end of a block', async () => {
    const redlock = open({ retryCount: 0 })
    {
      await using lock = await redlock.lock('f', 60_000)
      expect(lock.resource).toEqual(['f'])
    }
    await (await redlock.lock('f', 1000)).unlock()
  })

  it('refuses scripts', () => {
    const scripts = { lockScript: (script: string) => script }
    expect(() => open(scripts as Options)).toThrow('remove the options')
  })
})
