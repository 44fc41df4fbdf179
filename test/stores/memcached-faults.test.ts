import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import type { Store } from '../../src/contract/store.js'
import { MemcachedServer } from '../../src/drivers/memcached/index.js'
import { Holdfast, type HoldfastOptions } from '../../src/index.js'
import { MemcachedBackend } from '../../src/stores/memcached/backend.js'
import { MemcachedConnection } from '../../src/stores/memcached/connection.js'
import { memcached } from '../../src/stores/memcached/index.js'
import { assertIncreasing, eventually, inTime, rejectsWith } from '../../src/testing/conformance/checks.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { type MemcachedProcess, startMemcached } from '../servers/memcached.js'
import { TcpProxy } from '../servers/proxy.js'

/** Outlasts every fault on a busy machine. */
const LEASE_MS = 20_000

describeOn('memcached', 'the memcached store goes on by itself', () => {
  let server: MemcachedProcess
  const clients: Holdfast[] = []
  beforeAll(async () => {
    server = await startMemcached()
  })
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close({ drain: 0 })))
  })
  afterAll(() => server.stop())

  const client = (address = server.address, options: HoldfastOptions = {}): Holdfast => {
    const made = new Holdfast(memcached(address), { order: 'strict', storeTimeout: '20s', ...options })
    clients.push(made)
    return made
  }
  const behind = async (): Promise<TcpProxy> => {
    const proxy = await TcpProxy.start(server.port)
    onTestFinished(() => proxy.stop())
    return proxy
  }
  const lineKeys = async (): Promise<string[]> => {
    const keys = await server.keys()
    return keys.filter((key) => key.startsWith('holdfast:l:'))
  }

  it('after kill -9 and an empty restart: the holder is told, the waiter gets the lock, fences grow', async () => {
    const holder = await client().mutex('restart').acquire({ lease: LEASE_MS })
    const next = client().mutex('restart').acquire({ lease: LEASE_MS })
    await queued(client(), 'restart', 1)
    await server.restart({ keepData: false })
    const later = await inTime('the waiter', next)
    expect(later.fence).toBeGreaterThan(holder.fence)
    await eventually('the holder knowing', () => holder.signal.aborted)
    await later.release()
  })

  it('after the eviction of a line: the holder is told within about a second, and fences grow', async () => {
    const holder = await client().mutex('evicted').acquire({ lease: LEASE_MS })
    for (const key of await lineKeys()) await server.evict(key)
    await eventually('the holder knowing', () => holder.signal.aborted)
    const later = await client().mutex('evicted').acquire({ lease: LEASE_MS })
    expect(later.fence).toBeGreaterThan(holder.fence)
    await later.release()
  })

  it('after the server stood still: nothing is lost', async () => {
    const holder = await client().mutex('paused').acquire({ lease: LEASE_MS })
    const next = client().mutex('paused').acquire({ lease: LEASE_MS })
    await queued(client(), 'paused', 1)
    server.pause()
    const renewal = holder.extend(LEASE_MS)
    setTimeout(() => server.resume(), 2500)
    await inTime('the renewal', renewal)
    expect(holder.isValid).toBe(true)
    await holder.release()
    await (await inTime('the waiter', next)).release()
  })

  it('after the connection was cut: nothing is lost, and the waiter is served', async () => {
    const proxy = await behind()
    const holder = await client(`127.0.0.1:${proxy.port}`).mutex('cut').acquire({ lease: LEASE_MS })
    const next = client(`127.0.0.1:${proxy.port}`).mutex('cut').acquire({ lease: LEASE_MS })
    await queued(client(), 'cut', 1)
    proxy.mode = 'refuse'
    proxy.mode = 'pass'
    await holder.extend(LEASE_MS)
    expect(await holder.release()).toBe(true)
    await (await inTime('the waiter', next)).release()
  })

  it('where the answer to a claim is lost, the same claim is found again, and not made twice', async () => {
    const proxy = await behind()
    const connection = memcached(`127.0.0.1:${proxy.port}`, { timeout: '300ms' }).connect({
      id: 'c',
      space: 'lost',
      push: () => {},
    })
    onTestFinished(() => connection.close())
    await connection.pulse([])
    // Known lines are written without a read: the very first command changes the line.
    await connection.release('door', 'nobody')
    const before = await connection.claim(claimOf('door', 'before'))
    await connection.release('door', 'before')
    proxy.mode = 'lose replies'
    await rejectsWith('STORE_UNAVAILABLE', Promise.resolve(connection.claim(claimOf('door', 'mine'))))
    proxy.mode = 'pass'
    const again = await connection.claim(claimOf('door', 'mine'))
    const once = await connection.claim(claimOf('door', 'mine'))
    expect(again).toMatchObject({ status: 'granted' })
    expect(once).toMatchObject({ status: 'granted', fence: (again as { fence: number }).fence })
    assertIncreasing([(before as { fence: number }).fence, (again as { fence: number }).fence])
    const other = await connection.claim(claimOf('door', 'other', { mode: 'try' }))
    expect(other).toMatchObject({ status: 'refused', reason: 'busy' })
    proxy.mode = 'lose replies'
    await rejectsWith('STORE_UNAVAILABLE', Promise.resolve(connection.release('door', 'mine')))
    proxy.mode = 'pass'
    expect(await connection.release('door', 'mine')).toBe(false)
  })

  it('after the server had too many connections: the caller asks again', async () => {
    const small = await startMemcached({ args: ['-c', '32'] })
    onTestFinished(() => small.stop())
    const sockets: Socket[] = []
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
    })
    const refused = (): Promise<number> => small.stat('rejected_connections')
    while ((await refused()) === 0) {
      const socket = connect(small.port, '127.0.0.1')
      sockets.push(socket.on('error', () => {}))
      await once(socket, 'connect')
    }
    const connection = memcached(small.address).connect({ id: 'c', space: 's', push: () => {} })
    onTestFinished(() => connection.close())
    const error = await rejectsWith(
      'STORE_UNAVAILABLE',
      Promise.resolve(connection.claim(claimOf('door', 'mine'))),
    )
    expect(error.retryable).toBe(true)
    const before = await refused()
    const hold = client(small.address).mutex('many').acquire({ lease: LEASE_MS })
    await eventually('another refusal', async () => (await refused()) > before)
    for (const socket of sockets) socket.destroy()
    await (await inTime('the lock', hold)).release()
  })

  it('where one of two servers is gone, the locks on the other one go on', async () => {
    const other = await startMemcached()
    onTestFinished(() => other.stop())
    const locks = client(`${server.address},${other.address}`, { storeTimeout: '1s' })
    const names = Array.from({ length: 12 }, (_, index) => `two-${index}`)
    const holds = await Promise.all(names.map((name) => locks.mutex(name).acquire({ lease: 3000 })))
    await other.kill()
    const lost = await inTime(
      'the locks on the server that is gone',
      eventually('some lost', () => holds.some(({ signal }) => signal.aborted)).then(() => holds),
    )
    await eventually('every hold being lost or renewed', () =>
      lost.every(({ signal, remainingMs }) => signal.aborted || remainingMs > 1500),
    )
    const kept = holds.filter(({ signal }) => !signal.aborted)
    expect(kept.length).toBeGreaterThan(0)
    expect(kept.length).toBeLessThan(holds.length)
    for (const hold of kept) expect(await hold.release()).toBe(true)
  })

  it('with a client whose clock is an hour ahead: it takes no lock of others, and poisons no line', async () => {
    const holder = await client().mutex('skew').acquire({ lease: LEASE_MS })
    const odd = new Holdfast(storeOfClockAhead(server), { order: 'strict' })
    clients.push(odd)
    expect(await odd.mutex('skew').tryAcquire()).toBeNull()
    await holder.release()
    const theirs = await odd.mutex('skew').acquire({ lease: LEASE_MS })
    await theirs.release()
    const brief = await client().mutex('skew').acquire({ lease: LEASE_MS })
    expect(brief.fence).toBeGreaterThan(theirs.fence)
    expect(brief.fence / 1000).toBeLessThan(Date.now() + 60_000)
    await brief.release()
  })
})

async function queued(locks: Holdfast, name: string, count: number): Promise<void> {
  await eventually(`${count} waiting for ${name}`, async () => {
    for await (const line of locks.inspect({ prefix: name }))
      if (line.name === name) return line.waiters.length === count
    return false
  })
}

/** A store in a process whose wall clock is an hour ahead. */
function storeOfClockAhead({ port, address }: MemcachedProcess): Store {
  const env = { ...systemEnv, wallMs: () => Date.now() + 3_600_000 }
  const server = (onLoss: () => void): MemcachedServer =>
    new MemcachedServer({ host: '127.0.0.1', port, env, timeoutMs: 5000, onLoss })
  const backend = new MemcachedBackend({
    servers: [server],
    prefix: 'holdfast',
    retentionMs: 60_000,
    env,
    clock: null,
  })
  const { capabilities } = memcached(address)
  return {
    name: 'memcached',
    capabilities,
    connect: (context) => new MemcachedConnection(backend, context),
  }
}
