// The contestants on Redis. `where` is the server's URL. `pair(task)` is one acquire and release of
// the lock with that number.
import { randomUUID } from 'node:crypto'
import { LockFactory } from '@verrou/core'
import { redisStore } from '@verrou/core/drivers/redis'
import { Holdfast } from 'holdfast'
import { redis } from 'holdfast/redis'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { Mutex } from 'redis-semaphore'
import Redlock from 'redlock'
import { bareIoredis, bareNodeRedis } from './bare-redis.mjs'

const LEASE_MS = 30_000
const BARE_TAKE = `if redis.call('exists', KEYS[1]) == 0 then
  redis.call('set', KEYS[1], ARGV[1], 'PX', ${LEASE_MS})
  return 1
end
redis.call('rpush', KEYS[2], ARGV[1])
return 0`
const BARE_HAND_OVER = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
local next = redis.call('lpop', KEYS[2])
if not next then return redis.call('del', KEYS[1]) end
redis.call('set', KEYS[1], next, 'PX', ${LEASE_MS})
redis.call('publish', string.match(next, '^[^:]+'), next)
return 1`

export const redisContenders = {
  'holdfast ioredis': async (where) => {
    const client = new Redis(where)
    return holdfast(client, () => client.disconnect())
  },
  'holdfast node-redis': async (where) => {
    const client = await createClient({ url: where }).connect()
    return holdfast(client, () => client.destroy())
  },
  // What no lock on Redis can do without: the least that takes a lock and gives it back. No queue,
  // no fence, no waiting.
  'raw ioredis': async (where) => {
    const client = new Redis(where)
    return { pair: bareIoredis(client).pair, close: async () => client.disconnect() }
  },
  'raw node-redis': async (where) => {
    const client = await createClient({ url: where }).connect()
    return { pair: (await bareNodeRedis(client)).pair, close: async () => client.destroy() }
  },
  'redis-semaphore': async (where) => {
    const client = new Redis(where)
    return {
      pair: async (task) => {
        const mutex = new Mutex(client, `rs-${task}`, { lockTimeout: LEASE_MS, acquireTimeout: 120_000 })
        await mutex.acquire()
        await mutex.release()
      },
      close: async () => client.disconnect(),
    }
  },
  verrou: async (where) => {
    const client = new Redis(where)
    const retry = { attempts: Number.POSITIVE_INFINITY, delay: 10, timeout: 120_000 }
    const factory = new LockFactory(redisStore({ connection: client }).factory(), { retry })
    return {
      pair: async (task) => {
        const lock = factory.createLock(`v-${task}`, LEASE_MS)
        await lock.acquire()
        await lock.release()
      },
      close: async () => client.disconnect(),
    }
  },
  // The least that serves waiters in order of arrival: a list, and a message to the next. No
  // renewal, no fence, no re-entry, and a waiter that dies in line stops it.
  'bare hand-off': async (where) => {
    const [client, subscriber] = [new Redis(where), new Redis(where)]
    const channel = `bare-${randomUUID()}`
    const waiting = new Map()
    let asked = 0
    client.defineCommand('take', { numberOfKeys: 2, lua: BARE_TAKE })
    client.defineCommand('handOver', { numberOfKeys: 2, lua: BARE_HAND_OVER })
    subscriber.on('message', (_channel, id) => {
      waiting.get(id)()
      waiting.delete(id)
    })
    await subscriber.subscribe(channel)
    return {
      pair: async (task) => {
        const keys = [`{bare-${task}}`, `{bare-${task}}:line`]
        const id = `${channel}:${++asked}`
        const granted = new Promise((resolve) => waiting.set(id, resolve))
        if ((await client.take(...keys, id)) === 1) waiting.delete(id)
        else await granted
        await client.handOver(...keys, id)
      },
      close: async () => {
        client.disconnect()
        subscriber.disconnect()
      },
    }
  },
  redlock: async (where) => {
    const client = new Redis(where)
    const redlock = new Redlock([client], { retryCount: -1, retryDelay: 10, retryJitter: 5 })
    redlock.on('error', () => {})
    return {
      pair: async (task) => {
        const lock = await redlock.acquire([`rl-${task}`], LEASE_MS)
        await lock.release()
      },
      close: async () => client.disconnect(),
    }
  },
}

function holdfast(client, end) {
  const locks = new Holdfast(redis(client), { order: 'strict' })
  const mutexes = Array.from({ length: 64 }, (_, task) => locks.mutex(`lock-${task}`))
  return {
    pair: async (task) => {
      const hold = await mutexes[task].acquire()
      await hold.release()
    },
    close: async () => {
      await locks.close()
      end()
    },
  }
}
