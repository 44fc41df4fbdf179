import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { missingPeer, peerCommand } from '../../scripts/peers.mjs'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import { plainKeyLock, redis } from '../../src/stores/redis/index.js'
import { eventually, inTime, rejectsWith, settled } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { TcpProxy } from '../servers/proxy.js'
import { type RedisServer, startRedis } from '../servers/redis.js'

const CLAIM = {
  resource: 'door',
  id: 'ann:1',
  permits: EXCLUSIVE,
  capacity: EXCLUSIVE,
  leaseMs: 60_000,
  presenceMs: 60_000,
  maxHoldMs: null,
  mode: 'queue',
  floor: 0,
  block: 1,
  info: '{}',
} as const

const obstacle = missingPeer('valkey')
const title = 'plainKeyLock on a server that compares by itself'

describe.skipIf(obstacle !== null)(obstacle === null ? title : `${title} (skipped: ${obstacle})`, () => {
  // redis-cli asks it.
  describeOn('redis', 'Valkey 9', () => {
    let server: RedisServer
    let proxy: TcpProxy
    const clients: Redis[] = []
    beforeAll(async () => {
      server = await startRedis({ program: peerCommand('valkey')[0] ?? '' })
      proxy = await TcpProxy.start(server.port)
    })
    afterEach(async () => {
      for (const client of clients.splice(0)) client.disconnect()
      expect(await server.cli('info', 'commandstats')).not.toContain('cmdstat_eval')
      await server.cli('flushall')
    })
    afterAll(async () => {
      await proxy?.stop()
      await server?.stop()
    })

    const openLocks = () => {
      const client = new Redis(proxy.port)
      client.on('error', () => {})
      clients.push(client)
      return plainKeyLock(client, { poll: 10 })
    }

    it('excludes, and deletes only its own key', async () => {
      const lock = openLocks().mutex('door')
      const hold = await lock.acquire()
      expect(await lock.tryAcquire()).toBeNull()
      await rejectsWith('ACQUIRE_TIMEOUT', lock.acquire({ wait: 50 }))
      await server.cli('set', 'door', 'a stranger')
      expect(await hold.release()).toBe(false)
      expect(await server.cli('get', 'door')).toBe('a stranger')
      await server.cli('del', 'door')
      expect(await (await lock.acquire()).release()).toBe(true)
      expect(await server.cli('exists', 'door')).toBe('0')
    })

    it('renews its own key, and does not create it again', async () => {
      const hold = await openLocks().mutex('door').acquire({ lease: 3000 })
      await server.cli('pexpire', 'door', '2500')
      await eventually('a renewal', async () => Number(await server.cli('pttl', 'door')) > 2500)
      expect(hold.isValid).toBe(true)
      await server.cli('del', 'door')
      await eventually('the loss', () => hold.signal.aborted)
      expect(await server.cli('exists', 'door')).toBe('0')
    })

    it('knows its own key again after a lost answer', async () => {
      const locks = openLocks()
      await (await locks.mutex('first').acquire()).release()
      proxy.mode = 'lose replies'
      const waiting = locks.mutex('door').acquire({ lease: '40s' })
      await eventually('the key', async () => (await server.cli('exists', 'door')) === '1')
      proxy.mode = 'pass'
      expect(await (await inTime('the lock', waiting)).release()).toBe(true)
    })
  })
})

const replicasTitle = 'replicas on a server whose WAIT covers only the writes of its connection'

describe.skipIf(obstacle !== null)(
  obstacle === null ? replicasTitle : `${replicasTitle} (skipped: ${obstacle})`,
  () => {
    describeOn('redis', 'Valkey 9', () => {
      it.each(['ioredis', 'redis'] as const)(
        'counts no grant that no replica has when it is asked for again: %s',
        async (driver) => {
          const start = async (...args: string[]) => {
            const started = await startRedis({ program: peerCommand('valkey')[0] ?? '', args })
            onTestFinished(() => started.stop())
            return started
          }
          const master = await start()
          const replica = await start('--replicaof', '127.0.0.1', String(master.port))
          await master.hasReplica()
          const proxy = await TcpProxy.start(master.port)
          onTestFinished(() => proxy.stop())
          const url = `redis://127.0.0.1:${proxy.port}`
          const store = redis(url, { driver, replicas: 1, replicaTimeout: '3s' })
          const connection = store.connect({ id: 'ann', space: 'default', push: () => {} })
          onTestFinished(() => connection.close())
          replica.pause()
          onTestFinished(() => replica.resume())
          const claim = () => Promise.resolve(connection.claim(CLAIM))
          const first = settled(claim())
          await eventually('the grant', async () => (await master.cli('keys', '*door*')) !== '')
          proxy.cut()
          await first
          await eventually('an answer', async () => {
            const outcome = await settled(claim())
            expect(outcome).not.toHaveProperty('value')
            return String('error' in outcome && outcome.error).includes('replicas have the grant')
          })
        },
      )
    })
  },
)
