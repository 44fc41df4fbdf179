// The contestants on three Redis servers. `where` is their URLs, separated by commas. `pair(task)`
// is one acquire and release of the lock with that number.
import { setTimeout as wait } from 'node:timers/promises'
import { Holdfast } from 'holdfast'
import { quorum } from 'holdfast/quorum'
import { redis } from 'holdfast/redis'
import { Redis } from 'ioredis'
import { RedlockMutex } from 'redis-semaphore'
import Redlock, { ExecutionError } from 'redlock'

const LEASE_MS = 30_000
/**
 * The processes contend for lock 0 only: where they warm up, peers that poll may never be done with
 * each other.
 */
const nameOf = (task) => (task === 0 ? 'lock-0' : `lock-${task}-${process.pid}`)
/** As RedlockMutex has it; the 200 ms of redlock are much slower. */
const RETRY_MS = 10
/** So that each of them finishes, however long it takes. */
const LONGEST_WAIT_MS = 120_000

export const quorumContenders = {
  holdfast: (where) => holdfast(where, 'cohort'),
  'holdfast strict': (where) => holdfast(where, 'strict'),
  redlock: async (where) => {
    const clients = clientsOf(where)
    const redlock = new Redlock(clients, { retryCount: 0 })
    redlock.on('error', () => {})
    // Its own retries keep the votes of a minority until the lease is over. So the tasks would wait
    // for each other: each attempt here is a new one.
    const acquire = async (name) => {
      for (;;) {
        try {
          return await redlock.acquire([name], LEASE_MS)
        } catch (error) {
          if (!(error instanceof ExecutionError)) throw error
          await wait(RETRY_MS * (0.5 + Math.random()))
        }
      }
    }
    return {
      pair: async (task, onHeld) => {
        const lock = await acquire(`rl-${nameOf(task)}`)
        onHeld?.()
        await lock.release()
      },
      close: async () => disconnect(clients),
    }
  },
  RedlockMutex: async (where) => {
    const clients = clientsOf(where)
    const options = { lockTimeout: LEASE_MS, acquireTimeout: LONGEST_WAIT_MS, retryInterval: RETRY_MS }
    return {
      pair: async (task, onHeld) => {
        const mutex = new RedlockMutex(clients, `rm-${nameOf(task)}`, options)
        await mutex.acquire()
        onHeld?.()
        await mutex.release()
      },
      close: async () => disconnect(clients),
    }
  },
}

async function holdfast(where, order) {
  const clients = clientsOf(where)
  const locks = new Holdfast(quorum(clients.map((client) => redis(client))), { order })
  const mutexes = Array.from({ length: 64 }, (_, task) => locks.mutex(nameOf(task)))
  return {
    pair: async (task, onHeld) => {
      const hold = await mutexes[task].acquire()
      onHeld?.()
      await hold.release()
    },
    close: async () => {
      await locks.close()
      disconnect(clients)
    },
  }
}

function clientsOf(where) {
  return where.split(',').map((url) => new Redis(url))
}

function disconnect(clients) {
  for (const client of clients) client.disconnect()
}
