import { it } from 'vitest'
import { expectCompiles } from './compiler.js'

/** What compiles in an application, and what does not, with `exactOptionalPropertyTypes`. */
const CODE = `
import { type AcquireOptions, type Duration, Holdfast, type HoldfastOptions } from 'holdfast'
import { replaceFile } from 'holdfast/fence'
import { memcached } from 'holdfast/memcached'
import { memory } from 'holdfast/memory'
import { mysql } from 'holdfast/mysql'
import { postgres } from 'holdfast/postgres'
import { redis } from 'holdfast/redis'
import Redlock, { ExecutionError, Lock, type Settings } from 'holdfast/redlock'
import Redlock4, { type Lock as Lock4, LockError } from 'holdfast/redlock/v4'
import { sqlite } from 'holdfast/sqlite'
import { LockManager } from 'holdfast/web-locks'
import { etcd } from 'holdfast/etcd'
import { zookeeper } from 'holdfast/zookeeper'
import { Cluster, Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { createClient, createCluster } from 'redis'

const locks = new Holdfast(memory({ env: undefined }), { space: undefined, storeTimeout: undefined })
const mutex = locks.mutex('a', { order: undefined })

// Durations: milliseconds, or a number and a unit.
const fine: Duration[] = [0, 30_000, Infinity, '500ms', '1.5s', '30s', '30 s', '5m', '2h', '1d']
await mutex.acquire({ wait: '5s', lease: 30_000, maxHold: '10m' })
// @ts-expect-error seconds or milliseconds?
await mutex.acquire({ lease: '30' })
// @ts-expect-error no such unit
await mutex.acquire({ lease: '30sec' })
// @ts-expect-error no number
await mutex.acquire({ lease: 's' })
// @ts-expect-error two of them
await mutex.acquire({ lease: '1m 30s' })
// @ts-expect-error any text: read it with a cast, it is checked when it is used
const fromOutside: Duration = process.env['LEASE'] ?? '30s'

// Options that may be undefined, as they are in a function that passes its own on.
export async function passedOn(signal: AbortSignal | undefined, options: Partial<AcquireOptions>) {
  await mutex.acquire({ signal, wait: options.wait, lease: undefined, owner: undefined, label: undefined })
  await mutex.tryAcquire({ signal })
  await locks.semaphore('gpu', 2).acquire({ permits: undefined, signal })
  await locks.all(['a', 'b']).run(async () => {}, { signal })
  await locks.latch('go', 1, { retention: undefined }).wait({ wait: undefined, signal })
  await locks.barrier('phase', 2).meet({ lease: undefined, signal })
  await locks.election('boss').campaign({ id: undefined, signal })
  locks.election('boss').observe({ signal })
  locks.inspect({ prefix: undefined })
  await locks.breakHold('a', { fence: undefined })
  await locks.once('a', { atLeast: '1m', atMost: '1h', label: undefined }, async () => {})
  const client: HoldfastOptions = { presence: undefined, order: undefined, env: undefined }
  await Holdfast.open('memory:', client)
  sqlite('./locks.db', { driver: undefined })
  redis('redis://localhost', { prefix: undefined, replicas: undefined })
  postgres('postgres://localhost/app', { schema: undefined, listen: undefined, tls: undefined })
  mysql('mysql://localhost/app', { prefix: undefined, tls: undefined })
  etcd('localhost:2379', { root: undefined, ttl: undefined, tls: undefined })
  zookeeper('localhost:2181', { root: undefined, acl: undefined, auth: undefined })
  memcached('localhost:11211', { prefix: undefined, login: undefined, tls: undefined })
  new LockManager(locks, { lease: undefined })
  await replaceFile(1, './a', '', { wait: undefined, database: undefined })
}

// What programs for redlock have.
export async function redlock(settings: Partial<Settings>): Promise<number> {
  new Redlock([new Cluster([])])
  new Redlock([new Redis5()], { retryCount: 0, space: 'shop' })
  new Redlock([createClient(), createCluster({ rootNodes: [] })], {}, {})
  const redlock: Redlock = new Redlock(new Set([new Redis()]), settings)
  let lock: Lock = await redlock.acquire(['a'], 1000, { retryCount: 3 })
  lock = await redlock.extend(lock, 1000)
  const { attempts } = await lock.release()
  const [stats] = await Promise.all(attempts)
  redlock.on('error', (error) => console.log(error instanceof ExecutionError, stats?.votesAgainst.size))
  const length: number = await redlock.using(['a'], 1000, { driftFactor: 0.01 }, async (signal) => {
    if (signal.aborted) throw signal.error
    return 1
  })
  return redlock.using(['a', 'b'], 1000, async () => length)
}
export function redlock4(): Promise<Lock4> {
  const redlock = new Redlock4([new Redis()], { retryCount: 3, retryDelay: 10 })
  redlock.lock('a', 1000, (error, lock) => {
    if (error instanceof LockError || error instanceof Redlock4.LockError) return
    lock?.extend(1000, (failure: Error | null, extended?: Lock4) => extended?.unlock(() => failure))
  })
  return redlock.lock(['a', 'b'], 1000).then((lock) => lock.extend(1000))
}

// @ts-expect-error a misspelled option
await mutex.acquire({ wiat: '5s' })
// @ts-expect-error it never waits
await mutex.tryAcquire({ wait: '5s' })
// @ts-expect-error a misspelled option
new Holdfast(memory(), { spce: 'shop' })
`

it('options that are wrong do not compile, and those that may be undefined do', () =>
  expectCompiles(CODE, { noUnusedLocals: false }))
