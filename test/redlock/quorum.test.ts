import { createClient } from 'redis'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { ExecutionError, Redlock, type RedlockSettings } from '../../src/redlock/index.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'
import { openClient, reasonOf, waiting } from './site.js'

const PATIENT: RedlockSettings = { retryCount: 60, retryDelay: 1000 }

describeOn('redis', 'holdfast/redlock on three servers', () => {
  let servers: RedisServer[] = []
  beforeAll(async () => {
    servers = await Promise.all([startRedis(), startRedis(), startRedis()])
  })
  afterAll(() => Promise.all(servers.map((server) => server.stop())))

  function open(settings: RedlockSettings = {}): Redlock {
    const redlock = new Redlock(servers.map(openClient), settings)
    // A client of ioredis whose server is down never ends its quit().
    onTestFinished(() => redlock.locks.close())
    return redlock
  }

  it('has the calls of redlock, each lock with a greater fence', async () => {
    const redlock = open()
    const fences: number[] = []
    for (let round = 0; round < 3; round++) {
      let lock = await redlock.acquire(['account'], 5000)
      lock = await lock.extend(10_000)
      expect(lock.expiration - Date.now()).toBeGreaterThan(8000)
      fences.push(lock.fence)
      const { attempts } = await lock.release()
      expect(await attempts[0]).toMatchObject({ membershipSize: 3, quorumSize: 2 })
    }
    await redlock.using(['account'], 5000, async (signal) => expect(signal.aborted).toBe(false))
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b))
  })

  it('serves those that wait in order', async () => {
    const [first, ...others] = Array.from({ length: 5 }, () => open(PATIENT))
    const lock = await first?.acquire(['line'], 60_000)
    const served: number[] = []
    const all: Promise<void>[] = []
    for (const [index, other] of others.entries()) {
      const work = async (): Promise<void> => {
        const own = await other.acquire(['line'], 60_000)
        served.push(index)
        await own.release()
      }
      all.push(work())
      await waiting(first as Redlock, 'line', index + 1)
    }
    await lock?.release()
    await Promise.all(all)
    expect(served).toEqual([0, 1, 2, 3])
  })

  it('takes clients of node-redis, and one lock over several resources', async () => {
    const clients = await Promise.all(servers.map(({ url }) => createClient({ url }).connect()))
    onTestFinished(() => Promise.all(clients.map((client) => client.close())).then(() => {}))
    const redlock = new Redlock(clients)
    const lock = await redlock.acquire(['b', 'a'], 5000)
    expect([...lock.fences.keys()].sort()).toEqual(['a', 'b'])
    expect(await reasonOf(open().acquire(['a'], 1000, { retryCount: 0 }))).toBeInstanceOf(ExecutionError)
    await lock.release()
  })

  it('refuses a duration that is longer than the longest', async () => {
    const redlock = open({ longestDuration: '1m' })
    expect(await reasonOf(redlock.acquire(['long'], 61_000))).toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  it('works while one of the servers is down, and fails clearly without two of them', async () => {
    const redlock = open({ storeTimeout: '3s' })
    await (await redlock.acquire(['up'], 5000)).release()
    await servers[0]?.kill()
    for (let round = 0; round < 5; round++) await (await redlock.acquire(['down'], 5000)).release()
    await servers[1]?.kill()
    const error = (await reasonOf(redlock.acquire(['none'], 5000))) as ExecutionError
    expect(error).toBeInstanceOf(ExecutionError)
    expect(error.cause).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/member 1 \(redis\).*member 2 \(redis\)/),
    })
  })
})
