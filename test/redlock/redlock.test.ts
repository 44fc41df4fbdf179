import { once } from 'node:events'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { ExecutionError, Redlock, ResourceLockedError } from '../../src/redlock/index.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'
import { startRedisCluster } from '../servers/redis-cluster.js'
import { openClient, openRedlock, reasonOf, waiting } from './site.js'

/** With `retryDelay: 1000`: longer than any test takes. */
const PATIENT = { retryCount: 60, retryDelay: 1000 }

describeOn('redis', 'holdfast/redlock', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server?.stop())

  it('serves those that wait in order, and none of them polls', async () => {
    const redlock = openRedlock(server, PATIENT)
    const others = Array.from({ length: 4 }, () => openRedlock(server, PATIENT))
    const first = await redlock.acquire(['line'], 60_000)
    const served: number[] = []
    const all: Promise<void>[] = []
    for (const [index, other] of others.entries()) {
      const work = async (): Promise<void> => {
        const lock = await other.acquire(['line'], 60_000)
        served.push(index)
        await lock.release()
      }
      all.push(work())
      await waiting(redlock, 'line', index + 1)
    }
    await first.release()
    await Promise.all(all)
    expect(served).toEqual([0, 1, 2, 3])
  })

  it('gives up when the retries would be over, and names the holder', async () => {
    const redlock = openRedlock(server)
    const lock = await redlock.acquire(['held'], 60_000)
    const errors: Error[] = []
    redlock.on('error', (error) => errors.push(error))
    const before = Date.now()
    const error = (await reasonOf(
      redlock.acquire(['held'], 1000, { retryCount: 4, retryDelay: 60, retryJitter: 40 }),
    )) as ExecutionError
    expect(Date.now() - before).toBeGreaterThanOrEqual(400)
    expect(error).toBeInstanceOf(ExecutionError)
    const [stats] = await Promise.all(error.attempts)
    expect(stats).toMatchObject({ membershipSize: 1, quorumSize: 1, votesFor: new Set() })
    expect([...(stats?.votesAgainst.values() ?? [])]).toEqual([expect.any(ResourceLockedError)])
    expect(error.cause).toMatchObject({
      code: 'ACQUIRE_TIMEOUT',
      message: expect.stringContaining('held by'),
    })
    expect(errors).toEqual([expect.any(ResourceLockedError)])
    await lock.release()
  })

  it('keeps what it has of several resources while it waits for the others', async () => {
    const [one, two] = [openRedlock(server, PATIENT), openRedlock(server, PATIENT)]
    const held = await one.acquire(['several:b'], 60_000)
    const both = two.acquire(['several:a', 'several:b'], 2000)
    await waiting(one, 'several:b', 1)
    await new Promise((resolve) => setTimeout(resolve, 3000))
    await held.release()
    const lock = await both
    expect(lock.expiration).toBeGreaterThan(Date.now())
    await lock.release()
  })

  it('contenders for overlapping resources in any order do not deadlock', async () => {
    const names = ['p', 'q', 'r']
    const redlocks = [openRedlock(server, PATIENT), openRedlock(server, PATIENT)]
    let inside = 0
    const work = async (index: number): Promise<void> => {
      const wanted = names.filter((_name, at) => at !== index % 3)
      if (index % 2) wanted.reverse()
      await redlocks[index % 2]?.using(wanted, 5000, async () => {
        inside++
        expect(inside).toBe(1)
        await server.cli('ping')
        inside--
      })
    }
    await Promise.all(Array.from({ length: 12 }, (_, index) => work(index)))
  })

  it('using keeps its lock beyond the duration, and aborts with the error when it is broken', async () => {
    const redlock = openRedlock(server)
    const errors: Error[] = []
    redlock.on('error', (error) => errors.push(error))
    const error = await reasonOf(
      redlock.using(['used'], 3000, async (signal) => {
        await new Promise((resolve) => setTimeout(resolve, 4000))
        expect(signal.aborted).toBe(false)
        const aborted = once(signal, 'abort')
        await redlock.locks.breakHold('used')
        await aborted
        expect(signal.error).toBeInstanceOf(ExecutionError)
        expect(signal.reason).toMatchObject({ name: 'AbortError', cause: signal.error })
      }),
    )
    expect(error).toBeInstanceOf(ExecutionError)
    expect((error as ExecutionError).cause).toMatchObject({ code: 'HOLD_LOST' })
    expect(errors).toEqual([expect.any(ResourceLockedError)])
  })

  it('using tells its routine of a loss, also when a listener of `error` throws', async () => {
    const redlock = openRedlock(server)
    redlock.on('error', () => {
      throw new Error('a listener that fails')
    })
    const uncaught = once(process, 'uncaughtException')
    const error = await reasonOf(
      redlock.using(['thrown'], 60_000, async (signal) => {
        const aborted = once(signal, 'abort')
        await redlock.locks.breakHold('thrown')
        await aborted
      }),
    )
    expect(error).toBeInstanceOf(ExecutionError)
    expect(await uncaught).toEqual([new Error('a listener that fails'), 'uncaughtException'])
  })

  it('using passes the error of its routine on, also when the lock is lost', async () => {
    const redlock = openRedlock(server)
    const failing = redlock.using(['failing'], 60_000, async (signal) => {
      const aborted = once(signal, 'abort')
      await redlock.locks.breakHold('failing')
      await aborted
      throw new Error('insufficient balance')
    })
    expect(await reasonOf(failing)).toMatchObject({ message: 'insufficient balance' })
  })

  it('using keeps more than the threshold, where that is more than renewals keep', async () => {
    const redlock = openRedlock(server)
    const settings = { automaticExtensionThreshold: 8500 }
    await redlock.using(['threshold'], 10_000, settings, async () => {
      await new Promise((resolve) => setTimeout(resolve, 2500))
      // Without it, 7500 would be left: renewals come after a third.
      for await (const { holders } of redlock.locks.inspect({ prefix: 'threshold' }))
        expect(holders[0]?.expires.getTime()).toBeGreaterThan(Date.now() + 8000)
    })
  })

  it('a server that is gone: an ExecutionError with the failure, also on the error event', async () => {
    const gone = await startRedis()
    onTestFinished(async () => void (await gone.stop()))
    const client = new Redis(gone.url, { maxRetriesPerRequest: 0 })
    client.on('error', () => {})
    onTestFinished(() => client.disconnect())
    const redlock = new Redlock([client], { storeTimeout: '1s' })
    onTestFinished(() => redlock.locks.close())
    await (await redlock.acquire(['a'], 5000)).release()
    await gone.kill()
    const errors: unknown[] = []
    redlock.on('error', (error) => errors.push(error))
    const error = (await reasonOf(redlock.acquire(['a'], 5000, { retryCount: 0 }))) as ExecutionError
    expect(error).toBeInstanceOf(ExecutionError)
    expect(error.cause).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    const [stats] = await Promise.all(error.attempts)
    expect(stats?.votesAgainst.get(client)).toBe(error.cause)
    expect(errors).toEqual([error.cause])
  })

  it('quit() fails waiting calls, and leaves what is held', async () => {
    const [one, two] = [openRedlock(server), openRedlock(server)]
    await one.acquire(['left'], 60_000)
    const end = deferred<void>()
    const used = reasonOf(one.using(['left:used'], 60_000, () => end.promise))
    const other = await two.acquire(['left:other'], 60_000)
    const waits = reasonOf(one.acquire(['left:other'], 1000, { retryCount: -1 }))
    await waiting(two, 'left:other', 1)
    await one.quit()
    expect(await waits).toBeInstanceOf(ExecutionError)
    for (const name of ['left', 'left:used'])
      expect(await reasonOf(two.acquire([name], 1000, { retryCount: 0 }))).toBeInstanceOf(ExecutionError)
    end.resolve()
    expect(await used).toBeInstanceOf(ExecutionError)
    await other.release()
  })

  it('takes a client of node-redis', async () => {
    const client = createClient({ url: server.url })
    await client.connect()
    const redlock = new Redlock([client])
    await redlock.using(['node-redis'], 5000, async () => {
      const other = openRedlock(server)
      expect(await reasonOf(other.acquire(['node-redis'], 1000, { retryCount: 0 }))).toBeInstanceOf(
        ExecutionError,
      )
    })
    await redlock.quit()
    expect(client.isOpen).toBe(false)
  })

  it('refuses what it cannot do, and says what to do', () => {
    const [one, two] = [openClient(server), openClient(server)]
    expect(() => new Redlock([one, two])).toThrow('Give one client, or three')
    expect(() => new Redlock([one], {}, { acquireScript: () => '' })).toThrow('remove the third argument')
    // The same client twice is one server.
    expect(new Redlock([one, one]).clients.size).toBe(1)
  })
})

describeOn('redis', 'holdfast/redlock on a Cluster', () => {
  it('locks resources of different slots together', async () => {
    const cluster = await startRedisCluster()
    onTestFinished(async () => void (await cluster.stop()))
    const nodes = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }))
    const { Cluster } = await import('ioredis')
    const client = new Cluster(nodes)
    const redlock = new Redlock([client])
    const names = ['a', 'b', 'c', 'd']
    const masters = await Promise.all(names.map((name) => cluster.masterOf(name)))
    expect(new Set(masters).size).toBeGreaterThan(1)
    const lock = await redlock.acquire(names, 60_000)
    const error = await reasonOf(redlock.acquire(['e', 'd'], 1000, { retryCount: 0 }))
    expect(error).toBeInstanceOf(ExecutionError)
    const extended = await lock.extend(60_000)
    await extended.release()
    await (await redlock.acquire(['e', 'd'], 1000, { retryCount: 0 })).release()
    await redlock.quit()
  })
})
