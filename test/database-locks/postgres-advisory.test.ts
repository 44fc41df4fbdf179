import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { advisory } from '../../src/stores/postgres/index.js'
import {
  eventually,
  inTime,
  pass,
  rejectsWith,
  throwsWith,
  Watched,
} from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { startPgBouncer } from '../servers/pgbouncer.js'
import { type PostgresServer, startPostgres } from '../servers/postgres.js'
import { TcpProxy } from '../servers/proxy.js'
import { openPgPool, openPool } from '../stores/postgres/pools.js'
import { type Contender, expectEqualShare, sharesOf, waitElsewhere } from './shares.js'

/** As the page has it for other languages. */
const KEY_IN_SQL = "('x' || left(encode(sha256(convert_to($1, 'UTF8')), 'hex'), 16))::bit(64)::bigint"

describeOn('postgres', 'advisory locks of PostgreSQL', () => {
  let server: PostgresServer
  const endings: (() => unknown)[] = []
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterEach(async () => {
    // What a test still holds keeps its pool from ending.
    await server.dropClients()
    for (const end of endings.splice(0).reverse()) await end()
  })
  afterAll(() => server.stop())

  const openLocks = (max = 3): ReturnType<typeof advisory> & { pool: pg.Pool } => {
    const pool = openPgPool(server.url, max)
    endings.push(() => pool.end())
    return Object.assign(advisory(pool), { pool })
  }
  /** Somebody who knows nothing of Holdfast. */
  const stranger = async (): Promise<pg.Client> => {
    const client = new pg.Client(server.url)
    client.on('error', () => {})
    await client.connect()
    endings.push(() => client.end())
    return client
  }
  const lockSessions = async (): Promise<string[]> =>
    (await server.query("select distinct pid from pg_locks where locktype = 'advisory'")).split('\n')

  /** How many wait inside the server. */
  const waiting = async (): Promise<number> =>
    Number(await server.query("select count(*) from pg_locks where locktype = 'advisory' and not granted"))
  const isIdle = ({ pool }: { pool: pg.Pool }): Promise<void> =>
    eventually('all connections idle', () => pool.waitingCount === 0 && pool.idleCount === pool.totalCount)
  const isFree = async (): Promise<boolean> =>
    (await server.query("select count(*) from pg_locks where locktype = 'advisory'")) === '0'

  it('excludes strangers who take the same key, and waits for them', async () => {
    const locks = openLocks()
    const other = await stranger()
    const take = `select pg_try_advisory_lock(${KEY_IN_SQL}) as had`
    const isHad = async (): Promise<boolean> => (await other.query(take, ['Bericht ü'])).rows[0].had
    const hold = await locks.acquire('Bericht ü')
    expect(await isHad()).toBe(false)
    expect(await hold.release()).toBe(true)
    expect(await isHad()).toBe(true)
    expect(await locks.tryAcquire('Bericht ü')).toBeNull()
    const busy = await rejectsWith('ACQUIRE_TIMEOUT', locks.acquire('Bericht ü', { wait: 60 }))
    expect(busy.retryable).toBe(true)
    const next = new Watched(locks.acquire('Bericht ü'))
    await other.query(`select pg_advisory_unlock(${KEY_IN_SQL})`, ['Bericht ü'])
    expect((await inTime('the next hold', next.promise)).fence).toBeGreaterThan(hold.fence)
  })

  it('takes a key as it is', async () => {
    const locks = openLocks()
    const hold = await locks.acquire(-42n)
    expect(hold.key).toBe(-42n)
    expect((await (await stranger()).query('select pg_try_advisory_lock(-42) as had')).rows).toEqual([
      { had: false },
    ])
    await throwsLater('INVALID_ARGUMENT', () => locks.acquire(2n ** 63n))
    await throwsLater('INVALID_ARGUMENT', () => locks.acquire(''))
    await throwsLater('INVALID_ARGUMENT', () => locks.acquire(42 as unknown as bigint))
  })

  it('holds a hundred locks with one connection, and gives it back', async () => {
    const locks = openLocks()
    const holds = await Promise.all(
      Array.from({ length: 100 }, (_each, index) => locks.acquire(`lock ${index}`)),
    )
    expect(await lockSessions()).toHaveLength(1)
    expect(await server.query("select count(*) from pg_locks where locktype = 'advisory'")).toBe('100')
    await Promise.all(holds.map((hold) => hold.release()))
    expect(await server.query("select count(*) from pg_locks where locktype = 'advisory'")).toBe('0')
    await eventually('all connections idle', () => locks.pool.idleCount === locks.pool.totalCount)
  })

  it('lets the tasks of one process in one at a time, in their order, with fences that grow', async () => {
    const locks = openLocks()
    const seen: { index: number; fence: number }[] = []
    let inside = 0
    const runs = Array.from({ length: 20 }, (_each, index) =>
      locks.run('door', async ({ fence }) => {
        expect(++inside).toBe(1)
        await server.query('select 1')
        seen.push({ index, fence })
        inside--
      }),
    )
    await Promise.all(runs)
    expect(seen.map(({ index }) => index)).toEqual(runs.map((_each, index) => index))
    expect(seen.map(({ fence }) => fence)).toEqual(seen.map(({ fence }) => fence).toSorted((a, b) => a - b))
    expect(new Set(seen.map(({ fence }) => fence)).size).toBe(20)
  })

  it.each([3, 10])(
    'keeps the sessions of several pools of %i apart, and no fence comes twice',
    async (max) => {
      const all = [openLocks(max), openLocks(max), openLocks(max)]
      const fences: number[] = []
      let inside = 0
      const runs = all.flatMap((locks) =>
        Array.from({ length: 10 }, () =>
          locks.run('shared', async ({ fence }) => {
            expect(++inside).toBe(1)
            fences.push(fence)
            await locks.pool.query('select 1')
            inside--
          }),
        ),
      )
      await inTime('all', Promise.all(runs), 50_000)
      expect(fences).toEqual(fences.toSorted((a, b) => a - b))
      expect(new Set(fences).size).toBe(30)
    },
  )

  it('tells the loss of all its locks when their connection dies, and goes on with another', async () => {
    const locks = openLocks()
    const other = await stranger()
    await other.query('select pg_advisory_lock(7)')
    const [one, two] = [await locks.acquire('one'), await locks.acquire('two')]
    const waiting = new Watched(locks.acquire(7n))
    const entered = deferred<void>()
    const losing = new Watched(
      locks.run('three', async ({ signal }) => {
        entered.resolve()
        await eventually('the loss', () => signal.aborted)
      }),
    )
    await entered.promise
    const [pid] = await lockSessionsOf(one.key)
    await server.query(`select pg_terminate_backend(${pid})`)
    await rejectsWith('HOLD_LOST', losing.promise)
    for (const hold of [one, two]) {
      expect(hold.signal.reason).toMatchObject({ code: 'HOLD_LOST' })
      expect(hold.isValid).toBe(false)
      expect(await hold.release()).toBe(false)
    }
    expect((await locks.acquire('one')).fence).toBeGreaterThan(one.fence)
    await other.query('select pg_advisory_unlock(7)')
    await inTime('the waiter', waiting.promise)
  })

  it('rejects a run whose connection died unnoticed', async () => {
    const proxy = await TcpProxy.start(server.port)
    endings.push(() => proxy.stop())
    const pool = openPgPool(server.url.replace(`:${server.port}/`, `:${proxy.port}/`), 3)
    endings.push(() => pool.end())
    const done = deferred<void>()
    const running = rejectsWith(
      'HOLD_LOST',
      advisory(pool).run(18n, async () => {
        proxy.mode = 'stall'
        const [pid] = await lockSessionsOf(18n)
        await server.query(`select pg_terminate_backend(${pid})`)
        await eventually('its end', isFree)
        done.resolve()
      }),
    )
    await done.promise
    // The release has been sent, and now hears of the end.
    await pass(1)
    proxy.mode = 'pass'
    expect(await running).toMatchObject({ resource: '18', store: 'postgres' })
  })

  it.each([3, 10])(
    'goes on, with no other error than the loss, while the sessions of pools of %i are terminated again and again',
    async (max) => {
      const pools = [openLocks(max), openLocks(max), openLocks(max)]
      const errors: unknown[] = []
      let [isOver, grants] = [false, 0]
      const loops = pools.flatMap((locks) =>
        [1, 2, 3].map(async () => {
          while (!isOver)
            await locks
              .run('counter', async () => {
                grants++
                await server.query('select 1')
              })
              .catch((error) => errors.push(error.code))
        }),
      )
      for (let round = 1; round <= 10; round++) {
        await eventually('more grants', () => grants >= round * 3)
        const held = "select pid from pg_locks where locktype = 'advisory'"
        await server.query(`select pg_terminate_backend(pid) from (${held}) h`)
      }
      isOver = true
      await inTime('the end', Promise.all(loops))
      expect(new Set([...errors, 'HOLD_LOST'])).toEqual(new Set(['HOLD_LOST']))
    },
    120_000,
  )

  it('gets its share beside programs that wait in pg_advisory_lock', async () => {
    const locks = openLocks(10)
    // Makes the schema.
    await locks.run('first', () => {})
    const native = async (): Promise<Contender> => {
      const other = await stranger()
      return async (work) => {
        await other.query('select pg_advisory_lock(11)')
        await work()
        await other.query('select pg_advisory_unlock(11)')
      }
    }
    const natives = await Promise.all(Array.from({ length: 4 }, native))
    const shares = await inTime(
      'all entries',
      sharesOf([(work) => locks.run(11n, work), ...natives], 100),
      50_000,
    )
    expectEqualShare(shares)
  }, 60_000)

  it('gives back what comes after its caller has given up', async () => {
    const locks = openLocks()
    const other = await stranger()
    await other.query('select pg_advisory_lock(8)')
    const quit = new AbortController()
    const waiting = locks.acquire(8n, { signal: quit.signal })
    quit.abort()
    await rejectsWith('ABORTED', waiting)
    await rejectsWith('ABORTED', locks.acquire(8n, { signal: quit.signal }))
    await other.query('select pg_advisory_unlock(8)')
    for (let round = 0; round < 20; round++) {
      const early = new AbortController()
      const attempt = locks.acquire(8n, { signal: early.signal }).catch(() => null)
      setTimeout(() => early.abort(), round % 5)
      await (await attempt)?.release()
    }
    await eventually('nothing left behind', isFree)
  })

  it('leaves the queue of the server when nobody wants the lock any more', async () => {
    const locks = openLocks(4)
    const other = await stranger()
    await other.query('select pg_advisory_lock(9)')
    const quit = new AbortController()
    const aborted = locks.acquire(9n, { signal: quit.signal })
    const next = locks.acquire(9n)
    await eventually('a wait in the queue', async () => (await waiting()) === 1)
    const held = await locks.acquire('other')
    quit.abort()
    await rejectsWith('ABORTED', aborted)
    // The next one of this process has its place.
    await other.query('select pg_advisory_unlock(9)')
    await (await inTime('the next one', next)).release()
    await other.query('select pg_advisory_lock(9)')
    const late = new AbortController()
    const alone = locks.acquire(9n, { signal: late.signal })
    await eventually('a wait in the queue', async () => (await waiting()) === 1)
    late.abort()
    await rejectsWith('ABORTED', alone)
    await eventually('nobody in the queue', async () => (await waiting()) === 0)
    expect(held.isValid).toBe(true)
    expect(await held.release()).toBe(true)
    await isIdle(locks)
    await other.query('select pg_advisory_unlock(9)')
    expect(await isFree()).toBe(true)
  })

  it('keeps nothing that was granted while its caller gave up', async () => {
    const locks = openLocks(4)
    const other = await stranger()
    for (let round = 0; round < 10; round++) {
      await other.query('select pg_advisory_lock(10)')
      const quit = new AbortController()
      const attempt = locks.acquire(10n, { signal: quit.signal }).catch(() => null)
      await eventually('a wait in the queue', async () => (await waiting()) === 1)
      const released = other.query('select pg_advisory_unlock(10)')
      if (round % 2) await pass(round / 3)
      quit.abort()
      await released
      await (await inTime('the outcome', attempt))?.release()
    }
    await isIdle(locks)
    expect(await isFree()).toBe(true)
  })

  it('goes on when the connection that waits is terminated, and loses nothing', async () => {
    const locks = openLocks(4)
    const other = await stranger()
    await other.query('select pg_advisory_lock(12)')
    const held = await locks.acquire('other')
    const next = locks.acquire(12n)
    for (let round = 0; round < 2; round++) {
      await eventually('a wait in the queue', async () => (await waiting()) === 1)
      const who = await server.query("select pid from pg_locks where locktype = 'advisory' and not granted")
      await server.query(`select pg_terminate_backend(${who})`)
      await eventually('its end', async () => {
        return (await server.query(`select count(*) from pg_stat_activity where pid = ${who}`)) === '0'
      })
    }
    await other.query('select pg_advisory_unlock(12)')
    const hold = await inTime('the hold', next)
    expect([hold.isValid, held.isValid]).toEqual([true, true])
    expect([await hold.release(), await held.release()]).toEqual([true, true])
  })

  it('lets the next one in when the process that is first in the queue is killed', async () => {
    const [holder, next] = [await stranger(), await stranger()]
    await holder.query(`select pg_advisory_lock(${KEY_IN_SQL})`, ['killed'])
    const child = waitElsewhere('postgres', server.url, 'killed')
    await eventually('a wait in the queue', async () => (await waiting()) === 1)
    const second = next.query(`select pg_advisory_lock(${KEY_IN_SQL})`, ['killed'])
    await eventually('another one', async () => (await waiting()) === 2)
    child.kill('SIGKILL')
    await holder.query(`select pg_advisory_unlock(${KEY_IN_SQL})`, ['killed'])
    await inTime('the next one', second)
  })

  it('serves more keys that are taken than connections may wait, with half of the pool', async () => {
    const locks = openLocks(4)
    const other = await stranger()
    const keys = Array.from({ length: 6 }, (_each, index) => BigInt(100 + index))
    for (const key of keys) await other.query('select pg_advisory_lock($1)', [key])
    const all = Promise.all(keys.map((key) => locks.run(key, () => pass(1))))
    await eventually('a wait in the queue', async () => (await waiting()) === 1)
    // The rest of the pool is the application's.
    const rest = await inTime('the rest', Promise.all([locks.pool.connect(), locks.pool.connect()]))
    for (const client of rest) client.release()
    for (const key of keys) await other.query('select pg_advisory_unlock($1)', [key])
    await inTime('all of them', all)
    await isIdle(locks)
  })

  it('waits in the queue under a time limit for statements, and counts in any isolation', async () => {
    await server.query(`create role strict login superuser;
      alter role strict set statement_timeout = '200ms';
      alter role strict set default_transaction_isolation = 'repeatable read'`)
    const pool = openPgPool(server.url.replace('postgres@', 'strict@'), 4)
    endings.push(() => pool.end())
    const other = await stranger()
    const before = await openLocks().run(13n, ({ fence }) => fence)
    await other.query('select pg_advisory_lock(13)')
    const next = new Watched(advisory(pool).acquire(13n))
    const asked = async (): Promise<string> =>
      server.query("select query_start from pg_stat_activity where wait_event = 'advisory'")
    await eventually('a wait in the queue', async () => (await waiting()) === 1)
    const first = await asked()
    await eventually('another one', async () => ![first, ''].includes(await asked()))
    expect(next.isSettled).toBe(false)
    await other.query('select pg_advisory_unlock(13)')
    expect((await inTime('the hold', next.promise)).fence).toBeGreaterThan(before)
  })

  it('keeps no lock of a question that its client has given up', async () => {
    const pool = new pg.Pool({
      connectionString: server.url,
      max: 3,
      query_timeout: 300,
      idleTimeoutMillis: 0,
    })
    pool.on('error', () => {})
    endings.push(() => pool.end())
    const locks = Object.assign(advisory(pool), { pool })
    await locks.run(15n, () => {})
    const other = await stranger()
    // It is locked, and then cannot be counted.
    await other.query('begin; lock table holdfast.advisory_fence')
    await rejectsWith('STORE_UNAVAILABLE', locks.tryAcquire(15n))
    await other.query('commit')
    await isIdle(locks)
    await eventually('nothing locked', isFree)
  })

  it('does not take a server that is silent for a lock that is taken', async () => {
    const locks = openLocks(4)
    await locks.run('silent', () => {})
    const other = await stranger()
    await other.query('select pg_advisory_lock(14)')
    const queued = new Watched(locks.acquire(14n, { wait: '3s' }))
    await eventually('a wait in the queue', async () => (await waiting()) === 1)
    await server.pause()
    try {
      await rejectsWith('STORE_UNAVAILABLE', locks.acquire('silent', { wait: 100 }))
      await rejectsWith('STORE_UNAVAILABLE', queued.promise)
    } finally {
      await server.resume()
    }
  })

  it('says that the pool lends no connection, and gives back what it gets too late', async () => {
    const [used, fresh] = [openLocks(1), openLocks(1)]
    await used.run('lent', () => {})
    const refuse = async (locks: typeof used, key: bigint): Promise<void> => {
      const lent = await locks.pool.connect()
      const errors = await Promise.all([
        rejectsWith('STORE_UNAVAILABLE', locks.tryAcquire(key)),
        rejectsWith('STORE_UNAVAILABLE', locks.acquire('lent', { wait: 50 })),
        rejectsWith('STORE_UNAVAILABLE', locks.acquire('lent', { wait: 2100 })),
      ])
      for (const error of errors) expect(error).toMatchObject({ message: /No connection/, retryable: true })
      // The pool still has to serve the request of the first attempt.
      const next = locks.tryAcquire(key)
      lent.release()
      expect(await (await inTime('the next one', next))?.release()).toBe(true)
      await isIdle(locks)
    }
    await Promise.all([refuse(used, 16n), refuse(fresh, 17n)])
    await eventually('nothing locked', isFree)
  })

  it('creates its schema again when it was dropped, with the only connection of the pool', async () => {
    const locks = openLocks(1)
    const hold = await locks.acquire('held')
    await server.query('drop schema holdfast cascade')
    expect(await (await inTime('the lock', locks.acquire('next'))).release()).toBe(true)
    expect(hold.isValid).toBe(true)
    expect(await hold.release()).toBe(true)
    await isIdle(locks)
  })

  it('keeps a lock that it waited for while its schema was dropped', async () => {
    const locks = openLocks(4)
    const other = await stranger()
    await other.query('select pg_advisory_lock(19)')
    const next = new Watched(locks.acquire(19n))
    await eventually('a wait in the queue', async () => (await waiting()) === 1)
    await server.query('drop schema holdfast cascade')
    await other.query('select pg_advisory_unlock(19)')
    const hold = await inTime('the hold', next.promise)
    expect(await lockSessionsOf(19n)).toHaveLength(1)
    expect(await hold.release()).toBe(true)
  })

  it('says what is wrong with a read-only server, and keeps no lock there', async () => {
    const locks = openLocks()
    await locks.run('before', () => {})
    await server.query(
      'create role reader login superuser; alter role reader set default_transaction_read_only = on',
    )
    const pool = openPgPool(server.url.replace('postgres@', 'reader@'), 3)
    endings.push(() => pool.end())
    const held = new Watched(advisory(pool).acquire('before', { wait: '5s' }))
    const error = await rejectsWith('STORE_UNAVAILABLE', held.promise)
    expect(error.message).toMatch(/read-only/)
    await rejectsWith('STORE_UNAVAILABLE', advisory(pool).tryAcquire('before'))
    expect(await locks.tryAcquire('before')).not.toBeNull()
  })

  it('refuses what cannot tell of the end of its session', () => {
    const sql = openPool('postgres', server.url, 1)
    endings.push(() => sql.end())
    throwsWith('INVALID_ARGUMENT', () => advisory(sql as unknown as pg.Pool))
  })

  async function lockSessionsOf(key: bigint): Promise<string[]> {
    const [high, low] = [BigInt.asUintN(32, key >> 32n), BigInt.asUintN(32, key)]
    const where = `locktype = 'advisory' and classid = ${high} and objid = ${low}`
    return (await server.query(`select pid from pg_locks where ${where} and granted`)).split('\n')
  }

  async function throwsLater(code: 'INVALID_ARGUMENT', work: () => Promise<unknown>): Promise<void> {
    await rejectsWith(code, work())
  }
})

describeOn('pgbouncer', 'advisory locks of PostgreSQL behind a pooler in transaction mode', () => {
  it('are refused, or their loss is told, as soon as the session is another one', async () => {
    const pooler = await startPgBouncer()
    const pool = openPgPool(pooler.url, 20)
    try {
      const locks = advisory(pool)
      const hold = await locks.acquire('door')
      const held = await pooler.postgres.query("select pid from pg_locks where locktype = 'advisory'")
      const thieves: pg.PoolClient[] = []
      // Takes the connection to the server away from under the lock.
      for (let stolen = ''; stolen !== held; ) {
        const thief = await pool.connect()
        thieves.push(thief)
        await thief.query('begin')
        stolen = String((await thief.query('select pg_backend_pid() as pid')).rows[0].pid)
      }
      await rejectsWith('UNSUPPORTED', locks.acquire('other'))
      expect(hold.signal.aborted).toBe(true)
      for (const thief of thieves) thief.release(true)
    } finally {
      await pool.end()
      await pooler.stop()
    }
  })
})
