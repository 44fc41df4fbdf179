import { createPool } from 'mysql2/promise'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { EtcdClient } from '../../src/drivers/etcd/index.js'
import { ZooKeeperClient } from '../../src/drivers/zookeeper/index.js'
import { httpGuard, memoryGuard, postgresGuard, redisGuard, replaceFile } from '../../src/fence/index.js'
import { Holdfast } from '../../src/index.js'
import { etcd } from '../../src/stores/etcd/index.js'
import { memcached } from '../../src/stores/memcached/index.js'
import { memory } from '../../src/stores/memory/index.js'
import * as mysql from '../../src/stores/mysql/index.js'
import * as postgres from '../../src/stores/postgres/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { zookeeper } from '../../src/stores/zookeeper/index.js'
import { LockManager } from '../../src/web-locks/index.js'

const locks = new Holdfast(memory())
const shared = locks.readWrite('shared')
/** Nothing is sent: wrong options are refused before. */
const pgPool = new pg.Pool({ host: '127.0.0.1', port: 1 })
const mysqlPool = createPool('mysql://root@127.0.0.1:1/app')
const zk = new ZooKeeperClient('127.0.0.1:1', { closeTimeout: 0 })
const mutex = locks.mutex('mutex')
const queries = { query: async () => ({ rows: [], rowCount: 0 }) }
const scripts = { evalsha: async () => {}, eval: async () => {}, duplicate: () => {}, disconnect: () => {} }
const noWork = async (): Promise<void> => {}
const row = { table: 'a', set: { b: 1 }, where: { c: 2 } }
const hold = { resource: 'a', fence: 1 }

afterAll(async () => {
  await locks.close()
  await pgPool.end()
  await mysqlPool.end()
  await zk.close()
})

/** Each takes options: called with the wrong name of one, and with the right one that is meant. */
const CALLS: [what: string, wrong: string, right: string, call: (options: never) => unknown][] = [
  ['new Holdfast', 'spce', 'space', (options) => new Holdfast(memory(), options)],
  ['Holdfast.open', 'spce', 'space', (options) => Holdfast.open('memory:', options)],
  ['mutex', 'ordr', 'order', (options) => locks.mutex('a', options)],
  ['readWrite', 'ordr', 'order', (options) => locks.readWrite('a', options)],
  ['latch', 'retenton', 'retention', (options) => locks.latch('a', 1, options)],
  ['locked', 'wiat', 'wait', (options) => locks.locked('a', options)],
  ['once', 'lable', 'label', (options) => locks.once('a', options, noWork)],
  ['adopt', 'lable', 'label', (options) => locks.adopt('passed', options)],
  ['inspect', 'prefx', 'prefix', (options) => locks.inspect(options).next()],
  ['breakHold', 'fenc', 'fence', (options) => locks.breakHold('a', options)],
  ['mutex.acquire', 'wiat', 'wait', (options) => mutex.acquire(options)],
  ['mutex.tryAcquire', 'laese', 'lease', (options) => mutex.tryAcquire(options)],
  ['mutex.run', 'maxhold', 'maxHold', (options) => mutex.run(noWork, options)],
  ['read.acquire', 'ownr', 'owner', (options) => shared.read.acquire(options)],
  ['write.run', 'singal', 'signal', (options) => shared.write.run(noWork, options)],
  ['semaphore.acquire', 'permts', 'permits', (options) => locks.semaphore('gpu', 2).acquire(options)],
  ['semaphore.tryAcquire', 'permts', 'permits', (options) => locks.semaphore('gpu', 2).tryAcquire(options)],
  ['semaphore.run', 'permts', 'permits', (options) => locks.semaphore('gpu', 2).run(noWork, options)],
  ['all.acquire', 'wiat', 'wait', (options) => locks.all(['a', 'b']).acquire(options)],
  ['all.tryAcquire', 'laese', 'lease', (options) => locks.all(['a', 'b']).tryAcquire(options)],
  ['all.run', 'wiat', 'wait', (options) => locks.all(['a', 'b']).run(noWork, options)],
  ['striped.acquire', 'wiat', 'wait', (options) => locks.striped('s', 4).for('key').acquire(options)],
  ['campaign', 'wiat', 'wait', (options) => locks.election('boss').campaign(options)],
  ['observe', 'singal', 'signal', (options) => locks.election('boss').observe(options).next()],
  ['latch.wait', 'wiat', 'wait', (options) => locks.latch('go', 1).wait(options)],
  ['meet', 'wiat', 'wait', (options) => locks.barrier('phase', 2).meet(options)],
  ['memory', 'evn', 'env', (options) => memory(options)],
  ['sqlite', 'drivr', 'driver', (options) => sqlite('./never.db', options)],
  ['redis', 'prefx', 'prefix', (options) => redis('redis://127.0.0.1:1', options)],
  ['postgres', 'shcema', 'schema', (options) => postgres.postgres('postgres://127.0.0.1:1/app', options)],
  ['postgres of a pool', 'shcema', 'schema', (options) => postgres.postgres(pgPool, options)],
  ['postgres.sweep', 'shcema', 'schema', (options) => postgres.sweep(pgPool, options)],
  ['postgres.transactionLock', 'shcema', 'schema', (options) => postgres.transactionLock(pgPool, options)],
  ['its run', 'wiat', 'wait', (options) => postgres.transactionLock(pgPool).run('a', noWork, options)],
  ['advisory', 'shcema', 'schema', (options) => postgres.advisory(pgPool, options)],
  ['its acquire', 'wiat', 'wait', (options) => postgres.advisory(pgPool).acquire('a', options)],
  ['its run', 'wiat', 'wait', (options) => postgres.advisory(pgPool).run('a', noWork, options)],
  ['mysql', 'prefx', 'prefix', (options) => mysql.mysql('mysql://root@127.0.0.1:1/app', options)],
  ['mysql of a pool', 'prefx', 'prefix', (options) => mysql.mysql(mysqlPool, options)],
  ['mysql.sweep', 'prefx', 'prefix', (options) => mysql.sweep(mysqlPool, options)],
  ['mysql.transactionLock', 'prefx', 'prefix', (options) => mysql.transactionLock(mysqlPool, options)],
  ['its run', 'wiat', 'wait', (options) => mysql.transactionLock(mysqlPool).run('a', noWork, options)],
  ['sessionLock', 'prefx', 'prefix', (options) => mysql.sessionLock(mysqlPool, options)],
  ['its acquire', 'wiat', 'wait', (options) => mysql.sessionLock(mysqlPool).acquire('a', options)],
  ['its run', 'wiat', 'wait', (options) => mysql.sessionLock(mysqlPool).run('a', noWork, options)],
  ['memcached', 'prefx', 'prefix', (options) => memcached('127.0.0.1:1', options)],
  ['zookeeper', 'rot', 'root', (options) => zookeeper('127.0.0.1:1', options)],
  ['etcd', 'tll', 'ttl', (options) => etcd('127.0.0.1:1', options)],
  ['new EtcdClient', 'tsl', 'tls', (options) => new EtcdClient('127.0.0.1:1', options)],
  ['new ZooKeeperClient', 'tik', 'tick', (options) => new ZooKeeperClient('127.0.0.1:1', options)],
  ['its getData', 'wtach', 'watch', (options) => zk.getData('/a', options)],
  ['new LockManager', 'laese', 'lease', (options) => new LockManager(locks, options)],
  ['replaceFile', 'databse', 'database', (options) => replaceFile(hold, './never', '', options)],
  ['httpGuard', 'optonal', 'optional', (options) => httpGuard(memoryGuard(), options)],
  ['postgresGuard', 'tabel', 'table', (options) => postgresGuard(queries, options)],
  [
    'its update',
    'colum',
    'column',
    (options) => postgresGuard(queries).update(hold, { ...row, ...(options as object) }),
  ],
  [
    'its explain',
    'colum',
    'column',
    (options) => postgresGuard(queries).explain(hold, { ...row, ...(options as object) }),
  ],
  ['redisGuard.run', 'argument', 'arguments', (options) => redisGuard(scripts).run(hold, 'return', options)],
]

/** What a call throws or rejects with. */
async function outcomeOf(call: () => unknown): Promise<unknown> {
  try {
    return await call()
  } catch (error) {
    return error
  }
}

describe('an option that there is not', () => {
  it.each(CALLS)('is refused by %s', async (_what, wrong, right, call) => {
    const outcome = await outcomeOf(() => call({ [wrong]: undefined } as never))
    expect(outcome).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: `There is no option '${wrong}'; did you mean '${right}'?`,
    })
  })

  it.each([
    ['tryAcquire, which does not wait', () => mutex.tryAcquire({ wait: '5s' } as never)],
    ['campaign, whose owner is its id', () => locks.election('boss').campaign({ owner: 'a' } as never)],
  ])('is refused by %s', async (_what, call) => {
    expect(await outcomeOf(call)).toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  it.each([
    ['redis://127.0.0.1:1?prefx=a', 'prefix'],
    ['redis+cluster://127.0.0.1:1?replica=1', 'replicas'],
    ['mysql://root@127.0.0.1:1/app?conections=2', 'connections'],
    ['postgres://127.0.0.1:1/app?shcema=a', 'schema'],
    ['zookeeper://127.0.0.1:1?rot=/a', 'root'],
    ['etcd://127.0.0.1:1?rot=a', 'root'],
    ['memcached://127.0.0.1:1?prefx=a', 'prefix'],
  ])('is refused in the URL %s', async (url, right) => {
    expect(await outcomeOf(() => Holdfast.open(url))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(`did you mean '${right}'?`),
    })
  })

  it('is refused in a sqlite: URL, where it would name another file', async () => {
    expect(await outcomeOf(() => Holdfast.open('sqlite:./never.db?driver=libsql'))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: 'A sqlite: URL has no parameters; write sqlite:PATH',
    })
  })

  it('goes to the driver in a postgres: URL, where it is none of ours', () => {
    const url = 'postgres://127.0.0.1:1/app?sslmode=disable&application_name=shop&statement_timeout=5000'
    expect(postgres.postgres(url).name).toBe('postgres')
  })
})

describe('a URL of no known store', () => {
  it('is quoted without its password', async () => {
    const outcome = await outcomeOf(() => Holdfast.open('postgress://shop:secret@db.internal/app'))
    expect(outcome).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^'postgress:\/\/db\.internal\/app' is not the URL of a store/),
    })
  })
})

describe('an option that is undefined', () => {
  it('counts as left out', async () => {
    await using client = new Holdfast(memory({ env: undefined }), { space: undefined, order: undefined })
    const lock = client.mutex('a', { order: undefined })
    const nothing = { wait: undefined, lease: undefined, maxHold: undefined, signal: undefined }
    await using first = await lock.acquire({ ...nothing, owner: undefined, label: undefined })
    expect(first.remainingMs).toBeGreaterThan(20_000)
    expect(await lock.tryAcquire({ signal: undefined })).toBe(null)
  })

  it('does not replace what a passed hold came with', async () => {
    await using client = new Holdfast(memory())
    const given = await client.mutex('a').acquire({ lease: '2m' })
    await using taken = await client.adopt(await given.export(), { lease: undefined, maxHold: undefined })
    expect(taken.remainingMs).toBeGreaterThan(60_000)
  })

  it('does not replace what a URL says', () => {
    const nothing = { driver: undefined, connections: undefined }
    // A schema of 64 bytes is too long: so it was read.
    const long = 'x'.repeat(64)
    const url = `postgres://127.0.0.1:1/app?schema=${long}`
    expect(() => postgres.postgres(url, { ...nothing, schema: undefined })).toThrow(/schema is/)
    const other = `mysql://root@127.0.0.1:1/app?prefix=${encodeURIComponent('a`b')}`
    expect(() => mysql.mysql(other, { ...nothing, prefix: undefined })).toThrow(/prefix/)
  })
})

it('once() takes a long name, like any lock', async () => {
  await using client = new Holdfast(memory())
  const name = 'x'.repeat(8000)
  const once = client.once(name, { atLeast: '1m', atMost: '1h' }, () => 'done')
  expect(await once).toEqual({ ran: true, value: 'done' })
})
