import { Cluster, Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { redissonLock } from '../../src/stores/redis/index.js'
import {
  CountingEnv,
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

const OWNER = /^[0-9a-f-]{36}:\d+$/
/** A waiter that heard nothing would look again after 5 seconds, or when the lease ends. */
const PUSH_WITHIN_MS = 4000

describeOn('redis', 'redissonLock, without Redisson', () => {
  let server: RedisServer
  const endings: (() => unknown)[] = []
  beforeAll(async () => {
    server = await startRedis()
  })
  afterEach(async () => {
    server.resume()
    for (const end of endings.splice(0).reverse()) await end()
    await server.cli('flushall')
  })
  afterAll(() => server.stop())

  const openClient = (port = server.port, options = {}): Redis => {
    const client = new Redis({ port, ...options })
    client.on('error', () => {})
    endings.push(() => client.disconnect())
    return client
  }
  const openLocks = (port?: number, options = {}) => redissonLock(openClient(port), options)
  const throughProxy = async () => {
    const proxy = await TcpProxy.start(server.port)
    endings.push(() => proxy.stop())
    return { proxy, locks: openLocks(proxy.port) }
  }
  const keys = async () => (await server.cli('keys', '*')).split('\n').filter(Boolean).sort()
  const lines = async (...command: string[]) => (await server.cli(...command)).split('\n')

  it('writes the keys of Redisson, and removes them', async () => {
    const locks = openLocks()
    const mutex = await locks.mutex('a').acquire()
    const [owner = '', count] = await lines('hgetall', 'a')
    expect([OWNER.test(owner), count]).toEqual([true, '1'])
    expect(Number(await server.cli('pttl', 'a'))).toBeGreaterThan(20_000)
    const writer = await locks.readWrite('b').write.acquire()
    expect(await lines('hkeys', 'b')).toEqual(['mode', expect.stringMatching(/:write$/)])
    const reader = await locks.readWrite('x{c}').read.acquire()
    expect(await keys()).toContainEqual(expect.stringMatching(/^x\{c\}:.*:rwlock_timeout:1$/))
    const fenced = await locks.fenced('d').acquire()
    expect([fenced.fence, await server.cli('get', 'redisson_lock_token:{d}')]).toEqual([1, '1'])
    for (const hold of [mutex, writer, reader, fenced]) expect(await hold.release()).toBe(true)
    expect(await keys()).toEqual(['redisson_lock_token:{d}'])
  })

  it('lets many tasks of one process in one at a time, each woken by a message', async () => {
    const lock = openLocks().mutex('door')
    let [inside, most, served] = [0, 0, 0]
    const since = now()
    const runs = Array.from({ length: 50 }, () =>
      lock.run(async () => {
        most = Math.max(most, ++inside)
        await server.cli('ping')
        inside--
        served++
      }),
    )
    await Promise.all(runs)
    expect([most, served]).toEqual([1, 50])
    // 50 waits that end by polling would take minutes.
    expect(now() - since).toBeLessThan(30_000)
  })

  it('works through node-redis, too', async () => {
    const client = createClient({ url: server.url })
    await client.connect()
    endings.push(() => client.destroy())
    const lock = redissonLock(client).mutex('door')
    const hold = await lock.acquire()
    const waiting = new Watched(lock.acquire())
    await eventually('a subscription', async () => (await server.cli('pubsub', 'channels', '*door*')) !== '')
    const releasedAt = now()
    await hold.release()
    await (await inTime('the next', waiting.promise)).release()
    expect(waiting.settledAt - releasedAt).toBeLessThan(PUSH_WITHIN_MS)
  })

  it('goes on to be woken after its connections were cut', async () => {
    const lock = openLocks().mutex('door')
    const hold = await lock.acquire()
    const waiting = new Watched(lock.acquire())
    const hears = () =>
      eventually('a subscription', async () => (await server.cli('pubsub', 'channels', '*door*')) !== '')
    await hears()
    await server.dropClients()
    await hears()
    const releasedAt = now()
    await hold.release()
    await (await inTime('the next', waiting.promise)).release()
    expect(waiting.settledAt - releasedAt).toBeLessThan(PUSH_WITHIN_MS)
  })

  /** A client whose answers are late, and whose messages come another way. */
  const throughTwoProxies = async () => {
    const [commands, messages] = [await TcpProxy.start(server.port), await TcpProxy.start(server.port)]
    endings.push(() => Promise.all([commands.stop(), messages.stop()]))
    const client = openClient(commands.port)
    const duplicate = client.duplicate.bind(client)
    client.duplicate = (overrides) => duplicate({ ...overrides, port: messages.port })
    commands.delayMs = 300
    return { messages, lock: redissonLock(client).mutex('door') }
  }
  const attempts = async () =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await server.cli('info', 'commandstats'))?.[1])
  /** Resolves when the server has answered so many attempts, and the client does not know yet. */
  const attempted = async (count: number) => {
    const before = await attempts()
    await eventually('the attempts', async () => (await attempts()) >= before + count)
  }

  it('misses no release while an answer is on its way, although its first subscription failed', async () => {
    const { messages, lock } = await throughTwoProxies()
    const hold = await openLocks().mutex('door').acquire()
    messages.mode = 'refuse'
    const first = rejectsWith('ACQUIRE_TIMEOUT', lock.acquire({ wait: 3000 }))
    await eventually('an attempt to subscribe', () => messages.connections > 0)
    messages.mode = 'pass'
    await eventually('a subscription', async () => (await server.cli('pubsub', 'channels', '*door*')) !== '')
    await first
    const waiting = new Watched(lock.acquire())
    await attempted(1)
    const releasedAt = now()
    await hold.release()
    await (await inTime('the next', waiting.promise)).release()
    expect(waiting.settledAt - releasedAt).toBeLessThan(PUSH_WITHIN_MS)
  })

  it('misses no release while an answer is on its way, although its subscription came late', async () => {
    const { messages, lock } = await throughTwoProxies()
    const hold = await openLocks().mutex('door').acquire()
    messages.mode = 'stall'
    const waiting = new Watched(lock.acquire())
    // It tries again when it has waited long enough for the subscription.
    await attempted(2)
    const releasedAt = now()
    await hold.release()
    messages.mode = 'pass'
    await (await inTime('the next', waiting.promise)).release()
    expect(waiting.settledAt - releasedAt).toBeLessThan(PUSH_WITHIN_MS)
  })

  it('enters again inside run, keeps the fence, and is released at the end', async () => {
    const locks = openLocks()
    const lock = locks.fenced('door')
    await lock.run(async (outer) => {
      await lock.run(async (inner) => expect(inner.fence).toBe(outer.fence))
      await locks.mutex('door').run(async () => expect(await server.cli('hvals', 'door')).toBe('2'))
      expect(await server.cli('hvals', 'door')).toBe('1')
    })
    expect(await server.cli('exists', 'door')).toBe('0')
  })

  it('a nested call that fails does not keep the lock', async () => {
    const lock = openLocks().mutex('door')
    await lock.run(async () => {
      await rejectsWith('ABORTED', lock.acquire({ signal: AbortSignal.abort() }))
    })
    expect(await server.cli('exists', 'door')).toBe('0')
  })

  it('a nested hold that outlives the run keeps the lock', async () => {
    const lock = openLocks().mutex('door')
    const inner = await lock.run(() => lock.acquire())
    expect(await lock.tryAcquire()).toBeNull()
    expect(await inner.release()).toBe(true)
    expect(await server.cli('exists', 'door')).toBe('0')
  })

  it('a nested call does not bring an outer hold back that the server has lost', async () => {
    const lock = openLocks().mutex('door')
    const running = lock.run(
      async (outer) => {
        await server.cli('del', 'door')
        const inner = await lock.acquire()
        await eventually('the loss of the outer hold', () => outer.signal.aborted)
        expect(inner.isValid).toBe(true)
        expect(await inner.release()).toBe(true)
      },
      { lease: 3000 },
    )
    await rejectsWith('HOLD_LOST', running)
  })

  it.each(['mutex', 'fair', 'fenced', 'read', 'write'] as const)(
    '%s: is renewed, and never created again',
    async (kind) => {
      const locks = openLocks()
      const lock = kind === 'read' || kind === 'write' ? locks.readWrite('door')[kind] : locks[kind]('door')
      const hold = await lock.acquire({ lease: 900 })
      const renewed = server.cli('pexpire', 'door', '800')
      await renewed
      await eventually(
        'a renewal',
        async () => !hold.isValid || Number(await server.cli('pttl', 'door')) > 800,
      )
      await server.cli('flushall')
      await eventually('the loss', () => hold.signal.aborted)
      expect(await hold.release()).toBe(false)
      expect(await keys()).toEqual([])
    },
  )

  it.each(['mutex', 'fair', 'fenced', 'read', 'write'] as const)(
    '%s: a run rejects if its lock was lost unnoticed',
    async (kind) => {
      const locks = openLocks()
      const lock = kind === 'read' || kind === 'write' ? locks.readWrite('door')[kind] : locks[kind]('door')
      const lost = await rejectsWith(
        'HOLD_LOST',
        lock.run(() => server.cli('del', 'door')),
      )
      expect(lost).toMatchObject({ resource: 'door', store: 'redis' })
      const failing = lock.run(async () => {
        await server.cli('del', 'door')
        throw new TypeError('out of paper')
      })
      await expect(failing).rejects.toThrow(new TypeError('out of paper'))
    },
  )

  it('loses at its own deadline when the server is silent', async () => {
    const { proxy, locks } = await throughProxy()
    const hold = await locks.mutex('door').acquire({ lease: 4000 })
    proxy.mode = 'stall'
    await eventually('the loss', () => hold.signal.aborted)
    expect([hold.isValid, hold.remainingMs]).toEqual([false, 0])
    expect(hold.signal.reason).toMatchObject({ code: 'HOLD_LOST', cause: { code: 'STORE_UNAVAILABLE' } })
    proxy.mode = 'pass'
  })

  it.each(['mutex', 'fair', 'fenced', 'read', 'write'] as const)(
    '%s: is given back if its grant was lost on the way and the caller gave up',
    async (kind) => {
      const { proxy, locks } = await throughProxy()
      const lock = kind === 'read' || kind === 'write' ? locks.readWrite('door')[kind] : locks[kind]('door')
      await (await lock.acquire()).release()
      proxy.mode = 'lose replies'
      const controller = new AbortController()
      const waiting = rejectsWith('ABORTED', lock.acquire({ signal: controller.signal }))
      await eventually('the lock', async () => (await server.cli('exists', 'door')) === '1')
      controller.abort()
      await waiting
      proxy.mode = 'pass'
      await eventually('the lock to be gone', async () => (await server.cli('exists', 'door')) === '0')
    },
  )

  it('counts permits and latches once, although the client sends a command twice', async () => {
    const { proxy, locks } = await throughProxy()
    const [seats, latch] = [locks.semaphore('seats'), locks.latch('ready')]
    await seats.trySetPermits(10)
    await latch.trySetCount(11)
    // The server knows the scripts from now on.
    await (await seats.acquire()).release()
    await latch.countDown()
    const twice = async <T>(call: () => Promise<T>, isDone: () => Promise<boolean>): Promise<T> => {
      proxy.mode = 'lose replies'
      const calling = call()
      await eventually('the first sending', isDone)
      proxy.mode = 'pass'
      return inTime('the answer', calling)
    }
    const permits = await twice(
      () => seats.acquire({ permits: 3 }),
      async () => (await server.cli('get', 'seats')) === '7',
    )
    expect(await server.cli('get', 'seats')).toBe('7')
    await twice(
      () => permits.release(),
      async () => (await server.cli('get', 'seats')) === '10',
    )
    await twice(
      () => latch.countDown(),
      async () => (await server.cli('get', 'ready')) === '9',
    )
    await pass(100)
    expect([await server.cli('get', 'seats'), await server.cli('get', 'ready')]).toEqual(['10', '9'])
  })

  it('gives permits back once, also when the server no longer remembers the release', async () => {
    const { proxy, locks } = await throughProxy()
    const seats = locks.semaphore('seats')
    await seats.trySetPermits(3)
    // The server has the scripts from now on.
    await (await seats.acquire()).release()
    await server.cli('del', ...(await keys()).filter((key) => key !== 'seats'))
    const taken = await seats.acquire()
    proxy.mode = 'lose replies'
    await rejectsWith('STORE_UNAVAILABLE', taken.release())
    expect(await server.cli('get', 'seats')).toBe('3')
    proxy.mode = 'pass'
    // As after a minute.
    const memory = (await keys()).filter((key) => key !== 'seats')
    expect(memory).toHaveLength(1)
    await server.cli('del', ...memory)
    await taken.release()
    expect(await server.cli('get', 'seats')).toBe('3')
  })

  it('a run gives permits back after an outage that began before its end', async () => {
    const proxy = await TcpProxy.start(server.port)
    endings.push(() => proxy.stop())
    // What this client cannot send at once it does not send later.
    const sendOnce = { enableOfflineQueue: false, autoResendUnfulfilledCommands: false }
    const client = openClient(proxy.port, { ...sendOnce, lazyConnect: true })
    await client.connect()
    const seats = redissonLock(client).semaphore('seats')
    await seats.trySetPermits(3)
    const run = seats.run(() => {
      proxy.mode = 'refuse'
      return 'done'
    })
    expect(await inTime('the run', run)).toBe('done')
    expect(await server.cli('get', 'seats')).toBe('2')
    proxy.mode = 'pass'
    await eventually('the permit back', async () => (await server.cli('get', 'seats')) === '3')
  })

  it('gives permits back that were held for a day', async () => {
    const env = new CountingEnv()
    const seats = openLocks(undefined, { env }).semaphore('seats')
    await seats.trySetPermits(3)
    const taken = await seats.acquire()
    await server.cli('del', ...(await keys()).filter((key) => key !== 'seats'))
    const { now } = env
    env.now = () => now.call(env) + 24 * 3_600_000
    await taken.release()
    expect(await server.cli('get', 'seats')).toBe('3')
  })

  it('gives permits back that were taken without an answer', async () => {
    const { proxy, locks } = await throughProxy()
    const seats = locks.semaphore('seats')
    await seats.trySetPermits(3)
    await (await seats.acquire()).release()
    proxy.mode = 'lose replies'
    const controller = new AbortController()
    const waiting = rejectsWith('ABORTED', seats.acquire({ signal: controller.signal }))
    await eventually('a permit taken', async () => (await server.cli('get', 'seats')) === '2')
    controller.abort()
    await waiting
    proxy.mode = 'pass'
    await eventually('the permit back', async () => (await server.cli('get', 'seats')) === '3')
    await pass(100)
    expect(await server.cli('get', 'seats')).toBe('3')
  })

  it('passes a dead waiter of the fair line when its time is over', async () => {
    await server.cli('rpush', 'redisson_lock_queue:{door}', 'a dead one')
    await server.cli('zadd', 'redisson_lock_timeout:{door}', String(Date.now() + 1000), 'a dead one')
    const lock = openLocks().fair('door')
    expect(await lock.tryAcquire()).toBeNull()
    await (await inTime('the lock', lock.acquire())).release()
    expect(await keys()).toEqual([])
  })

  it('says within the wait that the server does not answer', async () => {
    const locks = openLocks()
    await (await locks.mutex('door').acquire()).release()
    server.pause()
    const calls = [
      locks.mutex('door').acquire({ wait: 100 }),
      locks.fair('door').tryAcquire(),
      locks.semaphore('seats').acquire({ wait: 100 }),
      locks.latch('ready').countDown(),
      locks.latch('ready').wait({ wait: 100 }),
    ]
    for (const call of calls) await rejectsWith('STORE_UNAVAILABLE', call)
    server.resume()
  })

  it('waits for a latch through an outage that is shorter than the wait', async () => {
    const { proxy, locks } = await throughProxy()
    const latch = locks.latch('ready')
    await latch.trySetCount(1)
    proxy.mode = 'stall'
    const waiting = new Watched(latch.wait({ wait: '1m' }))
    // Asked after the first look of the wait, and given up before the server answers.
    await rejectsWith('STORE_UNAVAILABLE', latch.count())
    proxy.mode = 'pass'
    await latch.countDown()
    await inTime('the end of the wait', waiting.promise)
  })

  it('ends the wait for a latch when its signal aborts, also while the server is silent', async () => {
    const latch = openLocks().latch('ready')
    await latch.trySetCount(1)
    server.pause()
    const controller = new AbortController()
    const waiting = rejectsWith('ABORTED', latch.wait({ signal: controller.signal }))
    controller.abort()
    await waiting
  })

  it('ends a wait when its signal aborts, and leaves no timer and no waiter behind', async () => {
    const env = new CountingEnv()
    const locks = openLocks(undefined, { env })
    const hold = await locks.mutex('abort-door').acquire()
    const controller = new AbortController()
    const { signal } = controller
    const held = env.activeTimers
    const waits = Array.from({ length: 20 }, () =>
      rejectsWith('ABORTED', locks.mutex('abort-door').acquire({ signal })),
    )
    const latch = locks.latch('abort-ready')
    await latch.trySetCount(1)
    waits.push(rejectsWith('ABORTED', latch.wait({ signal })))
    await eventually(
      'subscriptions',
      async () => (await lines('pubsub', 'channels', '*abort-*')).length === 2,
    )
    controller.abort()
    await Promise.all(waits)
    // One for each of two channels, which stay for a while, and one for the ping of the connection.
    await eventually('few timers', () => env.activeTimers <= held + 3)
    await hold.release()
    await (await locks.mutex('abort-door').acquire()).release()
  })

  it('refuses what Redisson would not understand', async () => {
    const locks = openLocks()
    throwsWith('INVALID_ARGUMENT', () => locks.mutex(''))
    throwsWith('INVALID_ARGUMENT', () => redissonLock(openClient(server.port, { keyPrefix: 'app:' })))
    throwsWith('INVALID_ARGUMENT', () => openLocks(undefined, { leas: 1 }))
    const cluster = new Cluster([{ port: server.port }], { lazyConnect: true })
    throwsWith('UNSUPPORTED', () => redissonLock(cluster))
    await rejectsWith('INVALID_ARGUMENT', locks.semaphore('seats').acquire({ permits: 0 }))
    await rejectsWith('INVALID_ARGUMENT', locks.latch('ready').trySetCount(0))
    await server.cli('set', 'door', 'a string')
    await rejectsWith('UNSUPPORTED', locks.mutex('door').acquire())
    const { read, write } = locks.readWrite('table')
    await rejectsWith(
      'UPGRADE_REFUSED',
      read.run(() => write.run(() => {})),
    )
  })
})
