import { createConnection } from 'mysql2/promise'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import { sessionLock } from '../../src/stores/mysql/index.js'
import { namesOf } from '../../src/stores/mysql/sql/names.js'
import { sessionLockRoutine } from '../../src/stores/mysql/sql/session-lock.js'
import {
  assertIncreasing,
  eventually,
  inTime,
  pass,
  rejectsWith,
  Watched,
} from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type MariadbServer, startMariadb } from '../servers/mariadb.js'
import { openPool, type Pool } from '../stores/mysql/pools.js'
import { type Contender, expectEqualShare, sharesOf, waitElsewhere } from './shares.js'

describeOn('mariadb', 'the session locks of MySQL', () => {
  let server: MariadbServer
  beforeAll(async () => {
    server = await startMariadb()
  })
  afterAll(() => server.stop())

  /** Somebody who uses GET_LOCK without us. */
  async function stranger(): Promise<(sql: string) => Promise<unknown>> {
    const connection = await createConnection(server.url)
    onTestFinished(() => connection.end())
    return async (sql) => Object.values((await connection.query<never[]>(`select ${sql}`))[0][0] ?? {})[0]
  }

  describe.each(['mysql2', 'mariadb'] as const)('of %s', (driver) => {
    const pools: Pool[] = []
    const open = (most = 3): Pool => {
      const pool = openPool(driver, server.url, most)
      pools.push(pool)
      return pool
    }
    afterEach(async () => {
      await Promise.all(pools.splice(0).map((pool) => pool.end()))
    })
    /** All its connections can be had at once. */
    async function isGivenBack(pool: Pool, most = 1): Promise<void> {
      const all = Array.from({ length: most }, (): Promise<{ release(): unknown }> => pool.getConnection())
      for (const connection of await inTime('the connections', Promise.all(all))) await connection.release()
    }
    /** How many wait inside GET_LOCK. */
    const waiting = async (): Promise<number> =>
      Number(
        await server.query("select count(*) from information_schema.processlist where state = 'User lock'"),
      )
    const free = (name: string): Promise<string> => server.query(`select is_free_lock('${name}')`)

    it('exclude those who use GET_LOCK themselves, and are excluded by them', async () => {
      const [locks, ask] = [sessionLock(open()), await stranger()]
      expect(await ask("get_lock('report', 0)")).toBe(1)
      expect(await locks.tryAcquire('report')).toBe(null)
      const error = await rejectsWith('ACQUIRE_TIMEOUT', locks.acquire('report', { wait: 30 }))
      expect([error.message, error.retryable]).toEqual([expect.stringContaining('report'), true])
      const waiting = new Watched(locks.acquire('report', { wait: '1m' }))
      await pass(50)
      expect(waiting.isSettled).toBe(false)
      expect(await ask("release_lock('report')")).toBe(1)
      const hold = await inTime('the hold', waiting.promise)
      expect(hold.isValid).toBe(true)
      expect(await ask("get_lock('report', 0)")).toBe(0)
      expect(await hold.release()).toBe(true)
      expect(await hold.release()).toBe(true)
      expect(hold.isValid).toBe(false)
      expect(await ask("get_lock('report', 0)")).toBe(1)
    })

    it('are written as the page says, whatever their case and length', async () => {
      const [locks, ask] = [sessionLock(open()), await stranger()]
      const rule = (name: string): string =>
        `if('${name}' regexp binary '^[a-z0-9_.:/-]{1,64}$' and '${name}' not like 'sha256:%', '${name}', concat('sha256:', left(sha2('${name}', 256), 57)))`
      const names = [
        'stock:7',
        'Stock:7',
        'STOCK:7',
        `${'long'.repeat(40)}`,
        `sha256:${'0'.repeat(57)}`,
        'ünï',
      ]
      const holds = await Promise.all(names.map((name) => locks.acquire(name)))
      for (const name of names) {
        expect(await ask(`is_used_lock(${rule(name)}) is not null`), name).toBe(1)
      }
      for (const hold of holds) await hold.release()
      for (const name of names) expect(await ask(`is_free_lock(${rule(name)})`), name).toBe(1)
    })

    it('need one connection for a hundred of them, and none when they are given back', async () => {
      const pool = open(1)
      const locks = sessionLock(pool)
      const names = Array.from({ length: 100 }, (_, number) => `many:${number}`)
      const holds = await inTime('all holds', Promise.all(names.map((name) => locks.acquire(name))))
      const owners = await server.query(
        `select count(distinct owner), count(*) from (${names.map((name) => `select is_used_lock('${name}') as owner`).join(' union all ')}) as locks where owner is not null`,
      )
      expect(owners).toBe('1\t100')
      await Promise.all(holds.map((hold) => hold.release()))
      // The only connection is the application's again.
      await isGivenBack(pool)
    })

    it('never let two tasks of one process in at once, though the session may lock again', async () => {
      const [locks, fences] = [sessionLock(open()), [] as number[]]
      let inside = 0
      const task = (): Promise<void> =>
        locks.run('door', async (hold) => {
          expect(++inside).toBe(1)
          fences.push(hold.fence)
          await pass(1)
          inside--
        })
      await inTime('all tasks', Promise.all(Array.from({ length: 20 }, task)))
      assertIncreasing(fences)
      expect(await free('door')).toBe('1')
      // The same pool has the same locks, wherever they are asked for.
      const hold = await locks.acquire('door')
      expect(await sessionLock(pools[0] as Pool).tryAcquire('door')).toBe(null)
      await hold.release()
    })

    it.each([3, 10])('exclude each other between pools of %i, with fences that grow', async (most) => {
      const all = Array.from({ length: 4 }, () => sessionLock(open(most)))
      const fences: number[] = []
      let inside = 0
      const work = async (locks: (typeof all)[number]): Promise<void> => {
        for (let turn = 0; turn < 10; turn++)
          await locks.run('gate', async (hold) => {
            expect(++inside).toBe(1)
            fences.push(hold.fence)
            await pass(Math.random() * 3)
            inside--
          })
      }
      await inTime('all turns', Promise.all(all.map(work)), 50_000)
      expect(fences).toHaveLength(40)
      assertIncreasing(fences)
    })

    it('tell of their loss when their connection is killed, and go on with another', async () => {
      const locks = sessionLock(open())
      const [one, two] = [await locks.acquire('one'), await locks.acquire('two')]
      const waiting = locks.acquire('one', { wait: '1m' })
      await server.query(`kill ${await server.query("select is_used_lock('one')")}`)
      await eventually('the loss', () => one.signal.aborted && two.signal.aborted)
      expect(one.signal.reason).toMatchObject({ code: 'HOLD_LOST', resource: 'one' })
      expect(one.isValid).toBe(false)
      expect(await one.release()).toBe(false)
      const next = await inTime('the next one', waiting)
      expect(next.fence).toBeGreaterThan(one.fence)
      expect(await next.release()).toBe(true)
      expect(await two.release()).toBe(false)
    })

    it('reject the run that has lost its lock', async () => {
      const locks = sessionLock(open())
      const running = locks.run('lost', async (hold) => {
        await server.query(`kill ${await server.query("select is_used_lock('lost')")}`)
        await eventually('the loss', () => hold.signal.aborted)
      })
      await rejectsWith('HOLD_LOST', running)
    })

    it('get their share beside programs that wait in GET_LOCK', async () => {
      const locks = sessionLock(open(10))
      // Makes the schema.
      await locks.run('first', () => {})
      const native = async (): Promise<Contender> => {
        const ask = await stranger()
        return async (work) => {
          expect(await ask("get_lock('share', 60)")).toBe(1)
          await work()
          expect(await ask("release_lock('share')")).toBe(1)
        }
      }
      const natives = await Promise.all(Array.from({ length: 4 }, native))
      const shares = await inTime(
        'all entries',
        sharesOf([(work) => locks.run('share', work), ...natives], 100),
        50_000,
      )
      expectEqualShare(shares)
    }, 60_000)

    it('leave the queue of the server when nobody wants the lock any more', async () => {
      const [pool, ask] = [open(4), await stranger()]
      const locks = sessionLock(pool)
      await ask("get_lock('report', 0)")
      const quit = new AbortController()
      const [first, second] = [{ signal: quit.signal }, { wait: '1m' as const }]
      const aborted = locks.acquire('report', first)
      const next = locks.acquire('report', second)
      await eventually('a wait in the queue', async () => (await waiting()) === 1)
      const other = await locks.acquire('other')
      quit.abort()
      await rejectsWith('ABORTED', aborted)
      // The next one of this process has its place.
      await ask("release_lock('report')")
      await (await inTime('the next one', next)).release()
      await ask("get_lock('report', 0)")
      const late = new AbortController()
      const alone = locks.acquire('report', { signal: late.signal })
      await eventually('a wait in the queue', async () => (await waiting()) === 1)
      late.abort()
      await rejectsWith('ABORTED', alone)
      await eventually('nobody in the queue', async () => (await waiting()) === 0)
      expect(other.isValid).toBe(true)
      expect(await other.release()).toBe(true)
      await isGivenBack(pool, 4)
      expect(await ask("release_lock('report')")).toBe(1)
      expect(await free('report')).toBe('1')
    })

    it('keep nothing that was granted while its caller gave up', async () => {
      const [pool, ask] = [open(4), await stranger()]
      const locks = sessionLock(pool)
      for (let round = 0; round < 10; round++) {
        await ask("get_lock('race', 60)")
        const quit = new AbortController()
        const attempt = locks.acquire('race', { signal: quit.signal }).catch(() => null)
        await eventually('a wait in the queue', async () => (await waiting()) === 1)
        const released = ask("release_lock('race')")
        if (round % 2) await pass(round / 3)
        quit.abort()
        await released
        await (await inTime('the outcome', attempt))?.release()
      }
      await isGivenBack(pool, 4)
      expect(await free('race')).toBe('1')
    })

    it('go on when the connection that waits is killed, and lose nothing', async () => {
      const [locks, ask] = [sessionLock(open(4)), await stranger()]
      await ask("get_lock('report', 0)")
      const other = await locks.acquire('other')
      const next = locks.acquire('report', { wait: '1m' })
      for (let round = 0; round < 2; round++) {
        await eventually('a wait in the queue', async () => (await waiting()) === 1)
        const who = await server.query(
          "select id from information_schema.processlist where state = 'User lock'",
        )
        await server.query(`kill ${who}`)
        await eventually('its end', async () => {
          const found = await server.query(
            `select count(*) from information_schema.processlist where id = ${who}`,
          )
          return found === '0'
        })
      }
      await ask("release_lock('report')")
      const hold = await inTime('the hold', next)
      expect([hold.isValid, other.isValid]).toEqual([true, true])
      expect([await hold.release(), await other.release()]).toEqual([true, true])
    })

    it('serve more names that are taken than connections may wait, with half of the pool', async () => {
      const [pool, ask] = [open(4), await stranger()]
      const locks = sessionLock(pool)
      const names = Array.from({ length: 6 }, (_, number) => `taken:${number}`)
      for (const name of names) await ask(`get_lock('${name}', 0)`)
      const all = Promise.all(names.map((name) => locks.run(name, () => pass(1))))
      await eventually('a wait in the queue', async () => (await waiting()) === 1)
      // The rest of the pool is the application's.
      await isGivenBack(pool, 2)
      for (const name of names) await ask(`release_lock('${name}')`)
      await inTime('all of them', all)
      await isGivenBack(pool, 4)
    })

    it('say that the pool lends no connection, and give back what they get too late', async () => {
      const [used, fresh] = [open(1), open(1)]
      await sessionLock(used).run('lent', () => {})
      const refuse = async (pool: Pool, name: string): Promise<void> => {
        const locks = sessionLock(pool)
        const lent = await pool.getConnection()
        const errors = await Promise.all([
          rejectsWith('STORE_UNAVAILABLE', locks.tryAcquire(name)),
          rejectsWith('STORE_UNAVAILABLE', locks.acquire('lent', { wait: 50 })),
          rejectsWith('STORE_UNAVAILABLE', locks.acquire('lent', { wait: 2100 })),
        ])
        for (const error of errors) expect(error).toMatchObject({ message: /No connection/, retryable: true })
        // The pool still has to serve the request of the first attempt.
        const next = locks.tryAcquire(name)
        await lent.release()
        expect(await (await inTime('the next one', next))?.release()).toBe(true)
        await isGivenBack(pool)
      }
      await Promise.all([refuse(used, 'lent:1'), refuse(fresh, 'lent:2')])
      for (const name of ['lent', 'lent:1', 'lent:2']) expect(await free(name)).toBe('1')
    })

    it('create their schema again when it was dropped, with the only connection of the pool', async () => {
      const pool = open(1)
      const locks = sessionLock(pool)
      const hold = await locks.acquire('held')
      await server.query('drop procedure holdfast_session_lock; drop table holdfast_session_fence')
      expect(await (await inTime('the lock', locks.acquire('next'))).release()).toBe(true)
      expect(hold.isValid).toBe(true)
      expect(await hold.release()).toBe(true)
      await isGivenBack(pool)
    })

    it('give a wait up when its signal aborts, and leave nothing behind', async () => {
      const [locks, ask] = [sessionLock(open(1)), await stranger()]
      await ask("get_lock('report', 0)")
      const quit = new AbortController()
      const waiting = locks.acquire('report', { signal: quit.signal })
      await pass(20)
      quit.abort(new Error('enough'))
      expect(await rejectsWith('ABORTED', waiting)).toMatchObject({ cause: new Error('enough') })
      await rejectsWith('ABORTED', locks.acquire('report', { signal: quit.signal }))
      await ask("release_lock('report')")
      await isGivenBack(pools[0] as Pool)
      expect(await free('report')).toBe('1')
    })
  })

  it('let the next one in when the process that is first in the queue is killed', async () => {
    const [holder, next] = [await stranger(), await stranger()]
    const waiting = async (count: number): Promise<boolean> => {
      const where = "from information_schema.processlist where state = 'User lock'"
      return (await server.query(`select count(*) ${where}`)) === String(count)
    }
    await holder("get_lock('killed', 0)")
    const child = waitElsewhere('mysql', server.url, 'killed')
    await eventually('a wait in the queue', () => waiting(1))
    const second = next("get_lock('killed', 60)")
    await eventually('another one', () => waiting(2))
    child.kill('SIGKILL')
    await holder("release_lock('killed')")
    expect(await inTime('the next one', second)).toBe(1)
  })

  it('say when there is no server', async () => {
    const pool = openPool('mysql2', 'mysql://root@127.0.0.1:1/test', 1)
    await rejectsWith('STORE_UNAVAILABLE', sessionLock(pool).acquire(systemEnv.id()))
    await rejectsWith('INVALID_ARGUMENT', sessionLock(pool).acquire(''))
    await pool.end()
  })

  it('do not take a server that is silent for a lock that is taken', async () => {
    const pool = openPool('mysql2', server.url, 4)
    onTestFinished(() => pool.end())
    await sessionLock(pool).run('silent', () => {})
    await server.pause()
    try {
      await rejectsWith('STORE_UNAVAILABLE', sessionLock(pool).acquire('silent', { wait: 100 }))
    } finally {
      await server.resume()
    }
  })

  it('say when the server cannot count, and keep nothing locked', async () => {
    const pool = openPool('mysql2', server.url, 2)
    onTestFinished(() => pool.end())
    await sessionLock(pool).run('counted', () => {})
    // Its rows can be neither found nor made.
    await server.query('alter table holdfast_session_fence change fence counter bigint not null')
    try {
      const error = await rejectsWith('STORE_UNAVAILABLE', sessionLock(pool).acquire('counted'))
      expect(error.message).toMatch(/fence/)
      expect(await server.query("select is_free_lock('counted')")).toBe('1')
    } finally {
      await server.query('alter table holdfast_session_fence change counter fence bigint not null')
    }
    expect(await sessionLock(pool).run('counted', () => 'again')).toBe('again')
  })

  it('keep nothing locked when the call that took the lock was interrupted', async () => {
    const prefix = 'interrupted'
    const pool = openPool('mysql2', server.url, 2)
    const administrator = await createConnection(server.url)
    onTestFinished(async () => {
      await pool.end()
      await administrator.end()
    })
    const locks = sessionLock(pool, { prefix })
    await locks.run('other', () => {})
    // Its last step takes so long that the call is interrupted there.
    const endless = 'WHILE TRUE DO SET v_fence = 0; END WHILE; COMMIT;'
    await administrator.query(`drop procedure ${prefix}_session_lock`)
    await administrator.query(sessionLockRoutine(namesOf(prefix)).replace('COMMIT;', endless))
    const refused = rejectsWith('STORE_UNAVAILABLE', locks.acquire('interrupted'))
    const working =
      "select id from information_schema.processlist where command = 'Query' and id <> connection_id()"
    await eventually('the interruption', async () => {
      if ((await server.query("select is_free_lock('interrupted')")) === '1') return false
      await server.query(`kill query ${await server.query(working)}`)
      return true
    })
    expect((await refused).message).toMatch(/interrupted/)
    expect(await server.query("select is_free_lock('interrupted')")).toBe('1')
  })

  it('survive a restart of the server with greater fences', async () => {
    const own = await startMariadb()
    const pool = openPool('mysql2', own.url, 2)
    onTestFinished(async () => {
      await pool.end()
      await own.stop()
    })
    const locks = sessionLock(pool)
    const first = await locks.acquire('door')
    await own.restart({ keepData: true })
    await eventually('the loss', () => first.signal.aborted, 60_000)
    const next = await inTime('the next hold', locks.acquire('door'))
    expect(next.fence).toBeGreaterThan(first.fence)
    await next.release()
  }, 120_000)
})
