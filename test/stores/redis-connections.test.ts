import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { expect, it, onTestFinished } from 'vitest'
import { Holdfast, type HoldfastOptions } from '../../src/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { eventually, inTime, settled } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { TcpProxy } from '../servers/proxy.js'
import { type RedisServer, startRedis } from '../servers/redis.js'

/** No pulse comes in time: what comes was told. */
const PUSHED = { presence: '10m' } satisfies HoldfastOptions

async function server(...args: string[]): Promise<RedisServer> {
  const started = await startRedis({ args })
  onTestFinished(() => started.stop())
  return started
}

function closing(locks: Holdfast): Holdfast {
  onTestFinished(() => locks.close({ drain: 0 }))
  return locks
}

/** A master with a replica that follows it. */
async function replicated(): Promise<RedisServer> {
  const master = await server()
  await server('--replicaof', '127.0.0.1', String(master.port))
  await master.hasReplica()
  return master
}

async function waiting(locks: Holdfast, name: string): Promise<void> {
  await eventually(`one who waits for ${name}`, async () => {
    for await (const line of locks.inspect({ prefix: name })) return line.waiters.length === 1
    return false
  })
}

describeOn('redis', 'the connections of the Redis store', () => {
  it.each(['ioredis', 'redis'])('uses a server as soon as it has loaded its data: %s', async (driver) => {
    const args = ['--rdbcompression', 'no']
    const live = await startRedis({ args })
    onTestFinished(() => live.stop())
    await live.cli('eval', "for n = 1, 600 do redis.call('set', n, string.rep('x', 2000)) end", '0')
    await live.cli('save')
    // It takes a minute, and answers between two keys.
    args.push('--key-load-delay', '100000', '--loading-process-events-interval-bytes', '1024')
    const restarted = live.restart({ keepData: true })
    const loading = async () => (await live.info('loading').catch(() => '')) === '1'
    await eventually('the server loads', loading)
    const locks = closing(new Holdfast(redis(`${live.url}?driver=${driver}`)))
    const acquired = locks.mutex('door').acquire({ wait: '8s', lease: '10m' })
    if (driver === 'ioredis')
      await eventually('it has asked', async () => (await live.cli('client', 'list')).includes('cmd=info'))
    await live.cli('config', 'set', 'key-load-delay', '0')
    await restarted
    await (await acquired).release()
  })

  it('listens again by itself when the server no longer refuses it', async () => {
    const live = await server()
    const permit = (...channels: string[]) =>
      live.cli('acl', 'setuser', 'ann', 'on', '>pw', '~*', '+@all', 'resetchannels', ...channels)
    await permit('allchannels')
    const store = redis(live.url.replace('//', '//ann:pw@'))
    const first = closing(new Holdfast(store, PUSHED))
    const hold = await first.mutex('door').acquire({ lease: '10m' })
    const channels = async () => (await live.cli('pubsub', 'channels', 'holdfast:client:*')).split('\n')
    await eventually('the first is heard', async () => (await channels())[0] !== '')
    // The ear stays open with what it has, and may not have more.
    await permit('&holdfast:echo:*', `&${(await channels())[0]}`)
    const second = closing(new Holdfast(store, PUSHED))
    // A first claim may be sent before the refusal is known.
    await eventually('the refusal', async () => {
      const outcome = await settled(second.mutex('window').tryAcquire())
      return 'error' in outcome && /lacks a permission/.test(String(outcome.error))
    })
    await permit('allchannels')
    await eventually('both are heard', async () => (await channels()).length === 2)
    const next = second.mutex('door').acquire({ lease: '10m' })
    await waiting(first, 'door')
    await hold.release()
    expect((await inTime('the second', next)).isValid).toBe(true)
  })

  const OWN = {
    async ioredis(url: string) {
      const client = new Redis(url, { retryStrategy: () => 20 })
      return { client, end: () => client.disconnect() }
    },
    async redis(url: string) {
      const client = createClient({ url, socket: { reconnectStrategy: 20 } })
      client.on('error', () => {})
      await client.connect()
      return { client, end: () => client.destroy() }
    },
  }

  it.each(Object.entries(OWN))(
    'opens the connection that waits for replicas anew when it was cut: %s',
    async (_, connect) => {
      const master = await replicated()
      const { client, end } = await connect(master.url)
      onTestFinished(end)
      const locks = closing(new Holdfast(redis(client, { replicas: 1 })))
      for (let round = 0; round < 3; round++) {
        const hold = await inTime('a confirmed hold', locks.mutex('door').acquire({ lease: '1m' }))
        await master.dropClients()
        expect(await inTime('its release', hold.release())).toBe(true)
      }
    },
  )

  it.each(['ioredis', 'redis'] as const)(
    'leaves the connection that waits for replicas when nothing comes through it any more: %s',
    async (driver) => {
      const master = await replicated()
      const proxy = await TcpProxy.start(master.port)
      onTestFinished(() => proxy.stop())
      const store = redis(`redis://127.0.0.1:${proxy.port}`, { driver, replicas: 1 })
      const locks = closing(new Holdfast(store, { storeTimeout: '30s' }))
      await locks.mutex('before').run(() => {})
      proxy.drop()
      expect((await inTime('a hold', locks.mutex('after').acquire())).isValid).toBe(true)
    },
  )
})
