import { Cluster, Redis } from 'ioredis'
import { createClient } from 'redis'
// @ts-expect-error Its types are not exported.
import Redlock from 'redlock'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { plainKeyLock } from '../../src/stores/redis/index.js'
import {
  eventually,
  inTime,
  now,
  pass,
  rejectsWith,
  throwsWith,
  Watched,
} from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { TcpProxy } from '../servers/proxy.js'
import { type RedisServer, startRedis } from '../servers/redis.js'
import { startRedisCluster } from '../servers/redis-cluster.js'

/** What others see of the lock. */
const TOKEN = /^[0-9a-f]{8}-/

describeOn('redis', 'plainKeyLock', () => {
  let server: RedisServer
  const endings: (() => unknown)[] = []
  beforeAll(async () => {
    server = await startRedis()
  })
  afterEach(async () => {
    for (const end of endings.splice(0).reverse()) await end()
    server.resume()
    await server.cli('flushall')
  })
  afterAll(() => server.stop())

  const openClient = (port = server.port, options = {}): Redis => {
    const client = new Redis({ port, ...options })
    client.on('error', () => {})
    endings.push(() => client.disconnect())
    return client
  }
  const openLocks = (port?: number, options = {}) => plainKeyLock(openClient(port), options)
  const throughProxy = async () => {
    const proxy = await TcpProxy.start(server.port)
    endings.push(() => proxy.stop())
    return { proxy, locks: openLocks(proxy.port) }
  }

  it('writes the key that the others write, and deletes it', async () => {
    const hold = await openLocks().mutex('a key').acquire({ lease: '20s' })
    expect(await server.cli('get', 'a key')).toMatch(TOKEN)
    expect(Number(await server.cli('pttl', 'a key'))).toBeGreaterThan(10_000)
    expect(hold.remainingMs).toBeGreaterThan(10_000)
    expect(await hold.release()).toBe(true)
    expect(await server.cli('exists', 'a key')).toBe('0')
    expect(hold.isValid).toBe(false)
    expect(await hold.release()).toBe(true)
  })

  it('puts its prefix, and that of the client, before the name', async () => {
    const locks = plainKeyLock(openClient(server.port, { keyPrefix: 'app:' }), { prefix: 'lock:' })
    await using hold = await locks.mutex('door').acquire()
    expect(await server.cli('keys', '*')).toBe('app:lock:door')
    expect(hold.resource).toBe('door')
  })

  it('works through node-redis, too', async () => {
    const client = createClient({ url: server.url })
    await client.connect()
    endings.push(() => client.destroy())
    const lock = plainKeyLock(client).mutex('door')
    await lock.run(async () => expect(await lock.tryAcquire()).toBeNull())
    await (await lock.acquire()).release()
  })

  it('keeps tasks and strangers out, and waits for them', async () => {
    const lock = openLocks(undefined, { poll: 10 }).mutex('door')
    await server.cli('set', 'door', 'a stranger', 'px', '60000')
    expect(await lock.tryAcquire()).toBeNull()
    expect((await rejectsWith('ACQUIRE_TIMEOUT', lock.acquire({ wait: 50 }))).retryable).toBe(true)
    const waiting = new Watched(lock.acquire())
    await pass(60)
    expect(waiting.isSettled).toBe(false)
    await server.cli('del', 'door')
    const hold = await inTime('the lock', waiting.promise)
    expect(await lock.tryAcquire()).toBeNull()
    await hold.release()
  })

  it('shares the key with redlock on one server', async () => {
    const redlock = new Redlock([openClient() as never], { retryCount: 0 })
    const lock = openLocks().mutex('door')
    await lock.run(async () => {
      await expect(redlock.acquire(['door'], 5000)).rejects.toThrow('quorum')
    })
    const theirs = await redlock.acquire(['door'], 30_000)
    expect(await lock.tryAcquire()).toBeNull()
    await theirs.release()
    await (await lock.acquire()).release()
  })

  it('is renewed, tells of a loss, and never touches the lock of the next holder', async () => {
    const hold = await openLocks().mutex('door').acquire({ lease: 5000 })
    let leftMs = Infinity
    await eventually('a renewal', async () => {
      const before = leftMs
      leftMs = Number(await server.cli('pttl', 'door'))
      return leftMs > before
    })
    expect(hold.isValid).toBe(true)
    await server.cli('set', 'door', 'a stranger')
    await eventually('the loss', () => hold.signal.aborted)
    expect((hold.signal.reason as { code: string }).code).toBe('HOLD_LOST')
    expect(await hold.release()).toBe(false)
    expect(await server.cli('get', 'door')).toBe('a stranger')
  })

  it('ends a wait although every answer takes longer than the lease, and leaves no lock', async () => {
    const { proxy, locks } = await throughProxy()
    const lock = locks.mutex('door')
    await (await lock.acquire()).release()
    proxy.delayMs = 150
    const error = await rejectsWith('STORE_UNAVAILABLE', lock.acquire({ lease: 100, wait: 300 }))
    expect(error).toMatchObject({ retryable: true, message: /longer than the lease of 100 ms/ })
    proxy.delayMs = 0
    await eventually('no lock', async () => (await server.cli('exists', 'door')) === '0')
  })

  it('rejects a run whose lock was lost unnoticed', async () => {
    const lock = openLocks().mutex('door')
    await rejectsWith(
      'HOLD_LOST',
      lock.run(() => server.cli('set', 'door', 'a stranger')),
    )
    expect(await server.cli('get', 'door')).toBe('a stranger')
  })

  it('is renewed in time although the answer to its acquisition took most of the lease', async () => {
    const { proxy, locks } = await throughProxy()
    await locks.mutex('window').run(() => {})
    const lease = 6000
    proxy.mode = 'stall'
    const acquiring = locks.mutex('door').acquire({ lease })
    await pass(0.7 * lease)
    proxy.mode = 'pass'
    const hold = await inTime('the hold', acquiring)
    await pass(lease)
    expect(hold.isValid).toBe(true)
    expect(await hold.release()).toBe(true)
  })

  it('does not create the key again that has gone', async () => {
    const hold = await openLocks().mutex('door').acquire({ lease: 200 })
    await server.cli('del', 'door')
    await eventually('the loss', () => hold.signal.aborted)
    expect(await server.cli('exists', 'door')).toBe('0')
  })

  it('loses at its own deadline when the server is silent', async () => {
    const { proxy, locks } = await throughProxy()
    const hold = await locks.mutex('door').acquire({ lease: 1000 })
    proxy.mode = 'stall'
    await eventually('the loss', () => hold.signal.aborted)
    expect(hold.isValid).toBe(false)
    expect(hold.remainingMs).toBe(0)
    proxy.mode = 'pass'
  })

  it('run() passes values and errors through, releases, and rejects after a loss', async () => {
    const lock = openLocks().mutex('door')
    expect(await lock.run(async () => 42)).toBe(42)
    await expect(lock.run(() => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
    const losing = lock.run(
      async ({ signal }) => {
        await server.cli('del', 'door')
        await eventually('the loss', () => signal.aborted)
      },
      { lease: 200 },
    )
    await rejectsWith('HOLD_LOST', losing)
    expect(await server.cli('exists', 'door')).toBe('0')
  })

  it('ends a wait when its signal aborts, and sends nothing if it was aborted before', async () => {
    await server.cli('set', 'door', 'a stranger')
    const lock = openLocks().mutex('door')
    const controller = new AbortController()
    const waiting = rejectsWith('ABORTED', lock.acquire({ signal: controller.signal }))
    await pass(30)
    controller.abort(new Error('enough'))
    expect((await waiting).cause).toEqual(new Error('enough'))
    await server.cli('del', 'door')
    await rejectsWith('ABORTED', lock.acquire({ signal: AbortSignal.abort() }))
    expect(await server.cli('exists', 'door')).toBe('0')
  })

  it('gives a lock back whose grant was lost on the way', async () => {
    const { proxy, locks } = await throughProxy()
    await (await locks.mutex('first').acquire()).release()
    proxy.mode = 'lose replies'
    const controller = new AbortController()
    const waiting = rejectsWith('ABORTED', locks.mutex('door').acquire({ signal: controller.signal }))
    await eventually('the key', async () => (await server.cli('exists', 'door')) === '1')
    controller.abort()
    await waiting
    proxy.mode = 'pass'
    await eventually('the key to be gone', async () => (await server.cli('exists', 'door')) === '0')
  })

  it('knows its own key again after a lost answer', async () => {
    const { proxy, locks } = await throughProxy()
    await (await locks.mutex('first').acquire()).release()
    proxy.mode = 'lose replies'
    const waiting = locks.mutex('door').acquire({ lease: '40s' })
    await eventually('the key', async () => (await server.cli('exists', 'door')) === '1')
    // The client sends the command again over its next connection.
    proxy.mode = 'pass'
    const hold = await inTime('the lock', waiting)
    expect(hold.isValid).toBe(true)
    expect(await hold.release()).toBe(true)
  })

  it('says within the wait that the server does not answer', async () => {
    const lock = openLocks().mutex('door')
    await (await lock.acquire()).release()
    server.pause()
    const since = now()
    const errors = [lock.tryAcquire(), lock.acquire({ wait: 100 }), lock.acquire({ wait: 2500 })]
    for (const each of errors) expect((await rejectsWith('STORE_UNAVAILABLE', each)).retryable).toBe(true)
    expect(now() - since).toBeLessThan(20_000)
    server.resume()
  })

  it('refuses what it cannot use', async () => {
    const locks = openLocks()
    throwsWith('INVALID_ARGUMENT', () => locks.mutex(''))
    throwsWith('INVALID_ARGUMENT', () => plainKeyLock('redis://localhost' as never))
    throwsWith('INVALID_ARGUMENT', () => plainKeyLock({} as never))
    throwsWith('INVALID_ARGUMENT', () => openLocks(undefined, { pol: 1 }))
    await rejectsWith('INVALID_ARGUMENT', locks.mutex('door').acquire({ lease: 1 }))
    await rejectsWith('INVALID_ARGUMENT', locks.mutex('door').acquire({ wiat: 1 } as never))
    await server.cli('hset', 'door', 'a', 'b')
    await rejectsWith('UNSUPPORTED', locks.mutex('door').acquire({ wait: 0 }))
  })
})

describeOn('redis', 'plainKeyLock in a Cluster', () => {
  it('takes, renews and releases keys of all slots, by scripts', async () => {
    const cluster = await startRedisCluster()
    const client = new Cluster(cluster.nodes.map(({ port }) => ({ port })))
    try {
      const locks = plainKeyLock(client)
      const names = Array.from({ length: 20 }, (_each, index) => `lock ${index}`)
      const holds = await Promise.all(names.map((name) => locks.mutex(name).acquire()))
      for (const name of names) expect(await locks.mutex(name).tryAcquire()).toBeNull()
      for (const hold of holds) expect(await hold.release()).toBe(true)
    } finally {
      client.disconnect()
      await cluster.stop()
    }
  })
})
