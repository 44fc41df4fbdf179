import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import type { RedlockSettings } from '../../src/redlock/index.js'
import { Redlock } from '../../src/redlock/index.js'
import type { RedisServer } from '../servers/redis.js'

/** A Redlock with a client of its own, as in another process. */
export function openRedlock(server: RedisServer, settings: RedlockSettings = {}): Redlock {
  const redlock = new Redlock([openClient(server)], settings)
  onTestFinished(() => redlock.quit().catch(() => {}))
  return redlock
}

export function openClient(server: RedisServer): Redis {
  const client = new Redis(server.url)
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  return client
}

/** The reason why a promise was rejected. */
export async function reasonOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => {
      throw new Error(`It was not rejected, but is ${String(value)}`)
    },
    (reason) => reason,
  )
}

/** Resolves when so many claims wait for the resource. */
export async function waiting(redlock: Redlock, resource: string, count: number): Promise<void> {
  for (;;) {
    for await (const { name, waiters } of redlock.locks.inspect({ prefix: resource }))
      if (name === resource && waiters.length >= count) return
  }
}
