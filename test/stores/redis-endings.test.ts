import { expect, it, onTestFinished, vi } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { inTime } from '../../src/testing/conformance/checks.js'
import { WorkerClient } from '../../src/testing/worker-client.js'
import { describeOn } from '../servers/availability.js'
import { startRedis } from '../servers/redis.js'
import { startRedisCluster } from '../servers/redis-cluster.js'
import { startRedisSentinel } from '../servers/redis-sentinel.js'

/** More than the longest time in which a client gives up connecting, on a busy machine. */
const LIMIT_MS = 180_000

const PLACES = {
  'one server': async () => {
    const server = await startRedis()
    return { url: server.url, kill: () => server.kill(), stop: () => server.stop() }
  },
  Sentinels: async () => {
    const group = await startRedisSentinel()
    const all = [...group.sentinels, ...group.nodes]
    return {
      url: group.url,
      kill: () => Promise.all(all.map((each) => each.kill())),
      stop: () => group.stop(),
    }
  },
  'a Cluster': async () => {
    const cluster = await startRedisCluster()
    return {
      url: cluster.url,
      kill: () => Promise.all(cluster.nodes.map((node) => node.kill())),
      stop: () => cluster.stop(),
    }
  },
}

const WAYS = [
  ['one server', 'ioredis'],
  ['one server', 'redis'],
  ['one server', 'iovalkey'],
  ['Sentinels', 'ioredis'],
  ['Sentinels', 'redis'],
  ['a Cluster', 'ioredis'],
  ['a Cluster', 'redis'],
] as const

describeOn('redis', 'a process with a client that nobody closed, while its Redis is gone', () => {
  for (const [place, driver] of WAYS)
    it.concurrent(`ends by itself: ${place} through ${driver}`, { timeout: 180_000 }, async (context) => {
      const { url, kill, stop } = await PLACES[place]()
      context.onTestFinished(async () => void (await stop()))
      const worker = await WorkerClient.start()
      context.onTestFinished(() => worker.end())
      await worker.call('open', { url: `${url}?driver=${driver}`, storeModule: null }, {})
      // A hold and a state: what is renewed, and what listens.
      await worker.call('acquire', 'door', { lease: 1000 })
      await worker.call('countDown', 'ready', 2, 1)
      await kill()
      await worker.letGo()
      context.expect(await inTime('its end', worker.exited, LIMIT_MS)).toEqual({ code: 0, signal: null })
    })
})

describeOn('redis', 'a process whose client was closed', () => {
  it.each(['ioredis', 'redis', 'iovalkey'] as const)('is kept by no timer: %s', async (driver) => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const timers = new Map<unknown, number>()
    const { setTimeout: set, clearTimeout: clear } = globalThis
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, ms = 0) => {
      const timer = set(run, ms)
      timers.set(timer, ms)
      return timer
    }) as typeof setTimeout)
    vi.spyOn(globalThis, 'clearTimeout').mockImplementation((timer) => {
      timers.delete(timer)
      clear(timer)
    })
    onTestFinished(() => void vi.restoreAllMocks())
    const locks = new Holdfast(redis(server.url, { driver }))
    await locks.mutex('door').run(() => {})
    await locks.close()
    const kept = [...timers].filter(([timer, ms]) => ms >= 1000 && (timer as NodeJS.Timeout).hasRef())
    expect(kept.map(([, ms]) => ms)).toEqual([])
  })
})
