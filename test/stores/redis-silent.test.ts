import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { it, type TestContext } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { eventually, inTime } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { freePort } from '../servers/ports.js'
import { TcpProxy } from '../servers/proxy.js'
import { type RedisServer, startRedis } from '../servers/redis.js'

const HOST = '127.0.0.1'
const DRIVERS = ['ioredis', 'redis', 'iovalkey'] as const

async function server({ onTestFinished }: TestContext, ...args: string[]): Promise<RedisServer> {
  const started = await startRedis({ args })
  onTestFinished(() => started.stop())
  return started
}

async function proxyTo({ port }: RedisServer, { onTestFinished }: TestContext): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(port)
  onTestFinished(() => proxy.stop())
  return proxy
}

/** The first connection is never answered, those after it are. */
async function acquireAtLast(locks: Holdfast, proxy: TcpProxy, { expect }: TestContext): Promise<void> {
  const asking = locks.mutex('door').acquire()
  await eventually('a connection', () => proxy.openConnections > 0)
  proxy.drop()
  proxy.mode = 'pass'
  expect((await inTime('a hold', asking)).isValid).toBe(true)
}

// Each waits for some seconds, until silence is noticed.
describeOn('redis', 'a connection to Redis that stands and is silent', () => {
  it.concurrent.for(DRIVERS)('is left, although it was open: %s', async (driver, context) => {
    const { expect } = context
    const proxy = await proxyTo(await server(context), context)
    await using locks = new Holdfast(redis(`redis://${HOST}:${proxy.port}`, { driver }), {
      storeTimeout: '30s',
    })
    const hold = await locks.mutex('before').acquire({ lease: '1m' })
    proxy.drop()
    expect((await locks.mutex('after').acquire()).isValid).toBe(true)
    expect(hold.isValid).toBe(true)
    expect(await hold.release()).toBe(true)
  })

  it.concurrent.for(DRIVERS)('is given up, if it was never answered: %s', async (driver, context) => {
    const proxy = await proxyTo(await server(context), context)
    proxy.mode = 'stall'
    await using locks = new Holdfast(redis(`redis://${HOST}:${proxy.port}`, { driver }), {
      storeTimeout: '30s',
    })
    await acquireAtLast(locks, proxy, context)
  })

  it.concurrent.for(DRIVERS)('is given up in a Cluster, too: %s', async (driver, context) => {
    const args = ['--cluster-enabled', 'yes', '--cluster-announce-ip', HOST]
    const live = await server(context, ...args, '--cluster-port', String(await freePort()))
    await live.cli('cluster', 'addslotsrange', '0', '16383')
    await eventually('a Cluster', async () => (await live.cli('cluster', 'info')).includes('state:ok'))
    const proxy = await proxyTo(live, context)
    proxy.mode = 'stall'
    await using locks = new Holdfast(redis(`redis+cluster://${HOST}:${proxy.port}`, { driver }), {
      storeTimeout: '30s',
    })
    await acquireAtLast(locks, proxy, context)
  })

  it.concurrent.for(['ioredis', 'redis'])('is given up for messages: %s', async (driver, context) => {
    const { expect, onTestFinished } = context
    const live = await server(context)
    const { port, url } = live
    const proxy = await proxyTo(live, context)
    proxy.mode = 'stall'
    const client =
      driver === 'redis' ? createClient({ socket: { host: HOST, port } }) : new Redis({ host: HOST, port })
    onTestFinished(() => (client instanceof Redis ? client.disconnect() : client.destroy()))
    // Only the first connection for messages leads to the proxy.
    let copies = 0
    const place = () => ({ host: HOST, port: ++copies === 1 ? proxy.port : port })
    if (client instanceof Redis) {
      const duplicate = client.duplicate.bind(client)
      client.duplicate = (overrides) => duplicate({ ...overrides, ...place() })
    } else {
      const duplicate = client.duplicate.bind(client)
      client.duplicate = (overrides) =>
        duplicate({ ...overrides, socket: { ...place(), reconnectStrategy: false } })
      await client.connect()
    }
    await using locks = new Holdfast(redis(client))
    await using others = new Holdfast(redis(url))
    const hold = await others.mutex('door').acquire()
    const waiting = locks.mutex('door').acquire({ lease: '10m' })
    await eventually('another connection', () => copies === 2)
    await hold.release()
    expect((await waiting).isValid).toBe(true)
    // The first one was closed, although it was never open.
    proxy.mode = 'pass'
    await eventually('no connection', () => proxy.openConnections === 0)
  })

  it.concurrent('is left, if it leads to a node that has left its Cluster', async (context) => {
    const { expect, onTestFinished } = context
    const [live, wrong] = await Promise.all([server(context), server(context)])
    const client = new Redis(live.url)
    onTestFinished(() => client.disconnect())
    // The first connection for messages leads to the wrong server, which answers.
    let copies = 0
    const duplicate = client.duplicate.bind(client)
    client.duplicate = (overrides) =>
      duplicate({ ...overrides, port: ++copies === 1 ? wrong.port : live.port })
    await using locks = new Holdfast(redis(client))
    await using others = new Holdfast(redis(live.url))
    const hold = await others.mutex('door').acquire()
    const waiting = locks.mutex('door').acquire({ lease: '10m' })
    await eventually('another connection', () => copies === 2)
    await hold.release()
    expect((await waiting).isValid).toBe(true)
  })
})
