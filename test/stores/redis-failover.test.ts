import { createSentinel } from 'redis'
import { afterEach, expect, it } from 'vitest'
import type { ClaimRequest } from '../../src/contract/store.js'
import { Holdfast } from '../../src/index.js'
import { type RedisOptions, redis } from '../../src/stores/redis/index.js'
import { eventually, inTime, now, settled } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { TcpProxy } from '../servers/proxy.js'
import { startRedis } from '../servers/redis.js'
import { startRedisCluster } from '../servers/redis-cluster.js'
import { startRedisSentinel } from '../servers/redis-sentinel.js'
import { WallClock } from '../servers/wall-clock.js'

/** Longer than a fail-over takes on a busy machine. */
const LEASE_MS = 60_000

function claimOf(resource: string, id: string): ClaimRequest {
  return {
    resource,
    id,
    permits: 2 ** 30,
    capacity: 2 ** 30,
    leaseMs: 2000,
    presenceMs: 2000,
    maxHoldMs: null,
    mode: 'queue',
    floor: 0,
    block: 1,
    info: '{}',
  }
}

async function lineOf(locks: Holdfast, name: string): Promise<number> {
  for await (const line of locks.inspect({ prefix: name })) return line.waiters.length
  return 0
}

describeOn('redis', 'the Redis store, when the master dies', () => {
  const endings: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const end of endings.splice(0).reverse()) await end()
  })
  const client = (from: Parameters<typeof redis>[0], options: RedisOptions): Holdfast => {
    const locks = new Holdfast(redis(from, options), { storeTimeout: '30s' })
    endings.push(() => locks.close({ drain: 0 }))
    return locks
  }

  it.each(['ioredis', 'redis'] as const)(
    'with Sentinels: what a replica had is kept, through %s',
    async (driver) => {
      const group = await startRedisSentinel()
      endings.push(() => group.stop())
      await handsOver(group.url, driver, () => group.killMaster())
    },
    90_000,
  )

  it.each(['ioredis', 'redis'] as const)(
    'with Sentinels: one of them that stands still is passed by, through %s',
    async (driver) => {
      const group = await startRedisSentinel()
      endings.push(() => group.stop())
      const silent = await TcpProxy.start(group.sentinels[0]?.port ?? 0)
      endings.push(() => silent.stop())
      silent.mode = 'stall'
      const locks = client(group.url.replace('://', `://127.0.0.1:${silent.port},`), { driver })
      expect((await inTime('a hold', locks.mutex('door').acquire())).isValid).toBe(true)
    },
    90_000,
  )

  it("with Sentinels: it goes on through the user's own client of them", { timeout: 90_000 }, async () => {
    const group = await startRedisSentinel()
    endings.push(() => group.stop())
    const sentinel = createSentinel({
      name: group.name,
      sentinelRootNodes: group.sentinels.map(({ port }) => ({ host: '127.0.0.1', port })),
    })
    sentinel.on('error', () => {})
    await sentinel.connect()
    endings.push(async () => sentinel.destroy())
    const [one, two] = [client(sentinel, {}), client(sentinel, {})]
    await keepsOrder(one)
    await group.killMaster()
    const hold = await inTime('a hold on the new master', one.mutex('door').acquire({ lease: LEASE_MS }))
    // Handed over, too: both are told by the new master.
    const next = two.mutex('door').acquire({ lease: LEASE_MS })
    await eventually('one in line', async () => (await lineOf(one, 'door')) === 1)
    expect(await hold.release()).toBe(true)
    expect((await inTime('the next one', next)).fence).toBeGreaterThan(hold.fence)
  })

  it.each(['ioredis', 'redis'] as const)(
    'with Sentinels: an old master that comes back is left before it is demoted, through %s',
    async (driver) => {
      const group = await startRedisSentinel()
      endings.push(() => group.stop())
      const locks = client(group.url, { driver, replicas: 1, replicaTimeout: 100 })
      await locks.mutex('door').acquire({ lease: LEASE_MS })
      const old = await group.master()
      // Nobody can demote it, however long this takes.
      await old.cli('acl', 'setuser', 'default', '-replicaof', '-slaveof')
      const next = await group.pauseMaster()
      old.resume()
      // The new one has no replica either, so nothing is granted there; but it was asked.
      const asking = settled(locks.mutex('window').acquire({ lease: LEASE_MS }))
      await eventually('a request at the new master', async () => (await next.cli('keys', '*window*')) !== '')
      await locks.close()
      await asking
      expect(await old.info('role')).toBe('master')
    },
    90_000,
  )

  it.each(['ioredis', 'redis'] as const)(
    'in a Cluster: what a replica had is kept, through %s',
    async (driver) => {
      const cluster = await startRedisCluster()
      endings.push(() => cluster.stop())
      await handsOver(cluster.url, driver, () => cluster.killMaster('holdfast:default:{door}'))
    },
    90_000,
  )

  it.each(['ioredis', 'redis'] as const)(
    'in a Cluster: a slot that moves while all connections stand is followed, through %s',
    async (driver) => {
      const cluster = await startRedisCluster()
      endings.push(() => cluster.stop())
      const locks = client(cluster.url, { driver, replicas: 1 })
      const hold = await locks.mutex('door').acquire({ lease: 9000 })
      const next = await cluster.replicaOf('door')
      await next.cli('cluster', 'failover')
      await eventually('the fail-over', async () => (await next.info('role')) === 'master')
      await cluster.serving()
      const validUntil = hold.remainingMs + now()
      await eventually('a renewal', () => !hold.isValid || now() + hold.remainingMs > validUntil)
      expect(hold.isValid).toBe(true)
      expect(await hold.release()).toBe(true)
      expect((await inTime('a hold', locks.mutex('door').acquire())).isValid).toBe(true)
    },
    90_000,
  )

  it.each([
    ['ioredis', 0],
    ['ioredis', 1],
    ['redis', 0],
    ['redis', 1],
  ] as const)(
    'behind one address: a master that was demoted is left, through %s, with %i replicas',
    async (driver, replicas) => {
      const { url, switchOver } = await pairBehindProxy()
      const locks = client(url, { driver, replicas })
      const hold = await locks.mutex('door').acquire({ lease: 15_000 })
      await switchOver()
      const validUntil = hold.remainingMs + now()
      await eventually('a renewal', () => !hold.isValid || now() + hold.remainingMs > validUntil)
      expect(await hold.release()).toBe(true)
    },
    90_000,
  )

  it('behind one address: a batch that a demoted master refuses leads to the new one', async () => {
    const { url, switchOver } = await pairBehindProxy()
    const connection = redis(url).connect({ id: 'one', space: 'default', push: () => {} })
    endings.push(() => connection.close())
    await connection.claim(claimOf('door', 'one:1'))
    await switchOver()
    const refused = ['two', 'three'].map(async (name) => connection.claim(claimOf(name, `one:${name}`)))
    for (const claim of refused)
      expect(await settled(claim)).toMatchObject({
        error: { retryable: true, message: expect.stringContaining('replica') },
      })
    expect(await connection.claim(claimOf('two', 'one:two'))).toMatchObject({ status: 'granted' })
  })

  /** A master and its replica, and an address that leads to the one that is the master. */
  async function pairBehindProxy(): Promise<{ url: string; switchOver(): Promise<void> }> {
    const [first, second] = [await startRedis(), await startRedis()]
    endings.push(() => Promise.all([first.stop(), second.stop()]))
    await second.cli('replicaof', '127.0.0.1', String(first.port))
    await first.hasReplica()
    const proxy = await TcpProxy.start(first.port)
    endings.push(() => proxy.stop())
    const switchOver = async (): Promise<void> => {
      await eventually('a copy', async () => (await second.cli('keys', '*door*')) !== '')
      proxy.targetPort = second.port
      await second.cli('replicaof', 'no', 'one')
      await first.cli('replicaof', '127.0.0.1', String(second.port))
    }
    return { url: `redis://127.0.0.1:${proxy.port}`, switchOver }
  }

  /** More than one call takes: the client must not let a later one overtake. */
  async function keepsOrder(locks: Holdfast): Promise<void> {
    const lock = locks.mutex('many', { order: 'strict' })
    const holder = await lock.acquire({ lease: LEASE_MS })
    const served: number[] = []
    const all = Array.from({ length: 100 }, (_, number) => lock.run(() => void served.push(number)))
    await eventually('all in line', async () => (await lineOf(locks, 'many')) === 100)
    await holder.release()
    await inTime('all of them', Promise.all(all))
    expect(served).toEqual([...served.keys()])
  }

  async function handsOver(
    url: string,
    driver: NonNullable<RedisOptions['driver']>,
    killMaster: () => Promise<unknown>,
  ): Promise<void> {
    const [one, two] = [client(url, { driver, replicas: 1 }), client(url, { driver, replicas: 1 })]
    const hold = await one.mutex('door').acquire({ lease: LEASE_MS })
    const next = two.mutex('door').acquire({ lease: LEASE_MS })
    // It waits until the end: with its replica gone, no grant is confirmed any more.
    next.catch(() => {})
    await eventually('one in line', async () => (await lineOf(one, 'door')) === 1)
    await killMaster()
    expect(hold.isValid).toBe(true)
    // The replica of the new master is gone, and with it the confirmation: a plain client tells what is kept.
    const plain = client(url, { driver })
    await eventually('the line on the new master', async () => {
      for await (const line of plain.inspect())
        return line.holders[0]?.fence === hold.fence && line.waiters.length === 1
      return false
    })
    expect(await hold.release()).toBe(true)
    const after = await inTime('a newcomer', plain.mutex('window').acquire({ lease: LEASE_MS }))
    expect(await after.release()).toBe(true)
  }
})

describeOn('redis', 'the Redis store, when the clock of the server is set back by an hour', () => {
  const clock = new WallClock()

  it.skipIf(clock.obstacle !== null)(
    `freezes nobody, and no fence falls${clock.obstacle ? ` (skipped: ${clock.obstacle})` : ''}`,
    async () => {
      const server = await startRedis({ clock })
      const [dead, alive] = [redis(server.url), new Holdfast(redis(server.url))]
      const silent = dead.connect({ id: 'dead', space: 'default', push: () => {} })
      const granted = await silent.claim(claimOf('door', 'dead:1'))
      clock.set(-3600)
      const hold = await inTime('the lease of the dead one', alive.mutex('door').acquire())
      expect(granted.status === 'granted' && hold.fence > granted.fence).toBe(true)
      await hold.release()
      const later = await alive.mutex('door').acquire()
      expect(later.fence).toBeGreaterThan(hold.fence)
      await Promise.all([silent.close(), alive.close()])
      await server.stop()
      clock.dispose()
    },
  )
})
