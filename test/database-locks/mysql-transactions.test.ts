import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { detached as outside } from '../../src/base/env.js'
import { transactionLock } from '../../src/stores/mysql/index.js'
import { eventually, inTime, rejectsWith, Watched } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type MariadbServer, startMariadb } from '../servers/mariadb.js'
import { openPool, type Pool } from '../stores/mysql/pools.js'
import { type Contender, expectEqualShare, sharesOf } from './shares.js'

/** How a test speaks to the transaction that it is given, whichever driver it is of. */
type Ask = (sql: string) => Promise<Record<string, unknown>[]>

describeOn('mariadb', 'the transaction lock of MySQL', () => {
  let server: MariadbServer
  beforeAll(async () => {
    server = await startMariadb()
    await server.query('create table stock (id int primary key, pieces int) engine = innodb')
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    await server.query('delete from stock; insert into stock values (7, 100)')
  })

  const pieces = async (): Promise<number> => Number(await server.query('select pieces from stock'))

  describe.each(['mysql2', 'mariadb'] as const)('of %s', (driver) => {
    let pool: Pool
    beforeAll(() => {
      pool = openPool(driver, server.url, 8)
    })
    afterAll(() => pool.end())

    const askerOf = (tx: unknown): Ask => {
      const { query } = tx as { query(sql: string): Promise<unknown> }
      return async (sql) => {
        const reply = await query.call(tx, sql)
        return (driver === 'mysql2' ? (reply as unknown[])[0] : reply) as Record<string, unknown>[]
      }
    }
    const run = <T>(
      name: string,
      work: (ask: Ask, tx: unknown) => T | Promise<T>,
      options: Parameters<ReturnType<typeof transactionLock>['run']>[2] = {},
    ): Promise<T> =>
      transactionLock<unknown>(pool).run(`${driver} ${name}`, (tx) => work(askerOf(tx), tx), options)

    /** Somebody else has it until `leave` is called. */
    async function held(name: string): Promise<{ leave(): Promise<void> }> {
      const [entered, leaving] = [deferred<void>(), deferred<void>()]
      const holding = run(name, async () => {
        entered.resolve(undefined)
        await leaving.promise
      })
      await inTime('the holder', Promise.race([entered.promise, holding]))
      return {
        leave: async () => {
          leaving.resolve(undefined)
          await holding
        },
      }
    }

    /** Asked from outside of any run. */
    async function isFree(name: string): Promise<boolean> {
      const key = `select turns from holdfast_row_lock where name = '${driver} ${name}' for update nowait`
      return server.query(key).then(
        () => true,
        () => false,
      )
    }

    it.each([undefined, 'read committed', 'repeatable read', 'serializable'] as const)(
      'keeps work that reads and then writes apart, in isolation %s',
      async (isolation) => {
        const sell = (): Promise<void> =>
          run(
            'stock:7',
            async (ask) => {
              const [row] = await ask('select pieces from stock where id = 7')
              await ask(`update stock set pieces = ${Number(row?.['pieces']) - 1} where id = 7`)
            },
            isolation === undefined ? {} : { isolation },
          )
        await inTime('all sales', Promise.all(Array.from({ length: 30 }, sell)), 50_000)
        expect(await pieces()).toBe(70)
      },
    )

    it('gives up when its signal aborts, does no work, and gives its connections back', async () => {
      const holder = await held('aborted')
      let worked = 0
      const controller = new AbortController()
      const { signal } = controller
      // More than the pool has connections.
      const waiting = Array.from({ length: 12 }, () => run('aborted', () => worked++, { signal }))
      const refused = Promise.all(waiting.map((each) => rejectsWith('ABORTED', each)))
      // InnoDB brings this table up to date only where nobody has read it for 100 ms.
      await expect
        .poll(
          () =>
            server.query("select count(*) from information_schema.innodb_trx where trx_state = 'LOCK WAIT'"),
          { interval: 200 },
        )
        .not.toBe('0')
      controller.abort(new Error('the caller has gone'))
      await inTime('the refusals', refused)
      // The holder still has it: nothing but the end of their waits frees connections for another one.
      expect(
        await inTime(
          'another lock',
          run('another', () => 'done'),
        ),
      ).toBe('done')
      await holder.leave()
      expect(await run('aborted', () => 'free', { wait: '10s', signal: new AbortController().signal })).toBe(
        'free',
      )
      expect(worked).toBe(0)
      await rejectsWith(
        'ABORTED',
        run('aborted', () => worked++, { signal }),
      )
      await rejectsWith(
        'INVALID_ARGUMENT',
        run('aborted', () => worked++, { signal: 'now' as unknown as AbortSignal }),
      )
    })

    it('gives up when its signal aborts before the pool has lent a connection', async () => {
      const small = openPool(driver, server.url, 1)
      onTestFinished(() => small.end())
      const lock = transactionLock<unknown>(small)
      await lock.run(`${driver} small`, () => {})
      const lent = await small.getConnection()
      const controller = new AbortController()
      let worked = 0
      const waiting = lock.run(`${driver} small`, () => worked++, { signal: controller.signal })
      const refused = new Watched(rejectsWith('ABORTED', waiting))
      controller.abort()
      try {
        await inTime('the refusal', refused.promise, 5000)
      } finally {
        lent.release()
      }
      expect(await lock.run(`${driver} small`, () => 'free')).toBe('free')
      expect(worked).toBe(0)
    })

    it('says that the pool lends no connection, and does no work when it gets one too late', async () => {
      const [used, fresh] = [openPool(driver, server.url, 1), openPool(driver, server.url, 1)]
      onTestFinished(async () => void (await Promise.all([used.end(), fresh.end()])))
      await transactionLock<unknown>(used).run(`${driver} lent`, () => {})
      let worked = 0
      const refuse = async (small: Pool): Promise<void> => {
        const lock = transactionLock<unknown>(small)
        const lent = await small.getConnection()
        const runs = [0, 50, 2100].map((wait) => lock.run(`${driver} lent`, () => worked++, { wait }))
        const errors = await Promise.all(runs.map((each) => rejectsWith('STORE_UNAVAILABLE', each)))
        for (const error of errors) expect(error).toMatchObject({ message: /No connection/, retryable: true })
        await lent.release()
        expect(await lock.run(`${driver} lent`, () => 'free', { wait: '10s' })).toBe('free')
      }
      await Promise.all([refuse(used), refuse(fresh)])
      expect(worked).toBe(0)
    })

    it('undoes work that fails, frees the lock, and lets the error pass', async () => {
      const failing = run('stock:7', async (ask) => {
        await ask('update stock set pieces = 0')
        throw new TypeError('out of paper')
      })
      await expect(failing).rejects.toThrow(new TypeError('out of paper'))
      expect(await pieces()).toBe(100)
      expect(await run('stock:7', () => 'free', { wait: 0 })).toBe('free')
    })

    it('gives up when the wait is over, or at once, and does no work', async () => {
      const holder = await held('stock:7')
      let hasWorked = false
      for (const wait of [0, 50, 1050]) {
        const error = await rejectsWith(
          'ACQUIRE_TIMEOUT',
          run('stock:7', () => (hasWorked = true), { wait }),
        )
        expect([error.message, error.retryable]).toEqual([expect.stringContaining('stock:7'), true])
      }
      expect(hasWorked).toBe(false)
      expect(await run('stock:8', () => 'another name is free', { wait: 0 })).toBe('another name is free')
      const next = new Watched(run('stock:7', () => 'mine', { wait: '1m' }))
      expect(next.isSettled).toBe(false)
      await holder.leave()
      expect(await inTime('the next one', next.promise)).toBe('mine')
    })

    it('gets its share with a wait below a second, beside others that wait for longer', async () => {
      await run('turn', () => {})
      const contender = (options: { wait?: number }): Contender => {
        const enter: Contender = (work) =>
          run('turn', work, options).catch((error) => {
            if (error.code !== 'ACQUIRE_TIMEOUT') throw error
            return enter(work)
          })
        return enter
      }
      const others = Array.from({ length: 4 }, () => contender({}))
      expectEqualShare(await sharesOf([contender({ wait: 900 }), ...others], 60))
    })

    it('gives the connection back as it was where the server waits for longer than the caller', async () => {
      const own = openPool(driver, server.url, 1)
      onTestFinished(() => own.end())
      const lock = transactionLock<unknown>(own)
      for (let round = 0; round < 2; round++) {
        const holder = await held('late')
        await rejectsWith(
          'ACQUIRE_TIMEOUT',
          lock.run(`${driver} late`, () => {}, { wait: 50 }),
        )
        // In the second round it is granted after all.
        if (round === 1) await holder.leave()
        const connection: unknown = await inTime<unknown>('the connection', own.getConnection())
        const settings = 'select @@autocommit as c, @@innodb_lock_wait_timeout as w, @@in_transaction as t'
        const [row = {}] = await askerOf(connection)(settings)
        expect(Object.values(row).map(Number)).toEqual([1, 50, 0])
        await (connection as { release(): unknown }).release()
        if (round === 0) await holder.leave()
        expect(await run('late', () => 'free', { wait: 0 })).toBe('free')
      }
    })

    it('goes on waiting where the server gives up', async () => {
      await server.query('set global innodb_lock_wait_timeout = 1')
      const impatient = openPool(driver, server.url, 2)
      try {
        const holder = await held('stock:7')
        const next = new Watched(transactionLock(impatient).run(`${driver} stock:7`, () => 'mine'))
        const waits = "show global status like 'Innodb_row_lock_waits'"
        const before = Number((await server.query(waits)).split('\t')[1])
        // It has begun to wait again twice.
        await eventually(
          'two time-outs',
          async () => Number((await server.query(waits)).split('\t')[1]) >= before + 3,
          30_000,
        )
        expect(next.isSettled).toBe(false)
        await holder.leave()
        expect(await inTime('the next one', next.promise)).toBe('mine')
      } finally {
        await server.query('set global innodb_lock_wait_timeout = 50')
        await impatient.end()
      }
    })

    it('leaves the connection as it was', async () => {
      const settings = 'select @@autocommit as a, @@innodb_lock_wait_timeout as w, @@tx_isolation as i'
      const one = openPool(driver, server.url, 1)
      try {
        const lock = transactionLock<unknown>(one)
        const seen: unknown[] = []
        const look = async (): Promise<void> => {
          const connection = await one.getConnection()
          seen.push(await askerOf(connection)(settings))
          await connection.release()
        }
        await look()
        await lock.run('a', () => {}, { wait: '30s', isolation: 'serializable' })
        await look()
        await expect(lock.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
        await look()
        expect(seen[1]).toEqual(seen[0])
        expect(seen[2]).toEqual(seen[0])
        const [inside] = await lock.run('a', (tx) => askerOf(tx)(settings), { isolation: 'read committed' })
        expect(inside?.['w']).toEqual((seen[0] as (typeof inside)[])[0]?.['w'])
      } finally {
        await one.end()
      }
    })

    it('enters again in the same transaction, and undoes a nested part by itself', async () => {
      for (const name of ['stock:8', 'stock:9']) await run(name, () => {})
      await run('stock:7', async (ask, tx) => {
        await ask('update stock set pieces = pieces - 1')
        await run('stock:7', async (inner, innerTx) => {
          expect(innerTx).toBe(tx)
          await inner('update stock set pieces = pieces - 10')
        })
        await expect(
          run('stock:8', async (inner) => {
            await inner('update stock set pieces = 0')
            await inner('select * from nowhere')
          }),
        ).rejects.toThrow(/nowhere/)
        await run('stock:9', () => {})
        // Row locks stay until the end, also of what was undone.
        expect(await isFree('stock:8')).toBe(false)
        expect(await isFree('stock:9')).toBe(false)
      })
      expect(await pieces()).toBe(89)
      expect(await isFree('stock:8')).toBe(true)
    })

    it('locks a name that nobody has used before, also inside another one', async () => {
      const name = `new ${Math.random()}`
      await run('stock:7', async () => {
        await run(name, async () => {
          await rejectsWith(
            'ACQUIRE_TIMEOUT',
            outside(() => run(name, () => {}, { wait: 0 })),
          )
        })
      })
      expect(await run(name, () => 'free', { wait: 0 })).toBe('free')
    })

    it('lets parallel nested runs take turns', async () => {
      let inside = 0
      await run('stock:7', async () => {
        const nested = Array.from({ length: 5 }, () =>
          run('stock:7', async (ask) => {
            inside++
            await ask('select sleep(0.01)')
            expect(inside).toBe(1)
            inside--
          }),
        )
        await Promise.all(nested)
      })
    })

    it('refuses to work on what was there before its turn', async () => {
      await run('stock:8', () => {})
      await run(
        'stock:7',
        async (ask) => {
          await ask('select * from stock')
          await outside(() => run('stock:8', (other) => other('update stock set pieces = 50')))
          const error = await rejectsWith(
            'STORE_UNAVAILABLE',
            run('stock:8', () => {}),
          )
          expect(error).toMatchObject({ retryable: true, message: /REPEATABLE READ/ })
        },
        { isolation: 'repeatable read' },
      )
    })

    it('tells of a deadlock, and keeps nothing of a transaction that the server has undone', async () => {
      for (const name of ['a', 'b']) await run(name, () => {})
      const [hasA, hasB] = [deferred<void>(), deferred<void>()]
      // Each has changed as much, so the server may end either.
      const crossed = async (first: string, second: string, mine: typeof hasA, theirs: typeof hasA) =>
        run(first, async (ask) => {
          await ask('insert into stock values (1000 + floor(rand() * 1e6), 0)')
          mine.resolve(undefined)
          await theirs.promise
          // Whoever swallows the error does not get half of the work committed.
          await run(second, () => {}).catch(() => {})
          await ask('insert into stock values (2000000 + floor(rand() * 1e6), 0)')
        })
      const outcomes = await inTime(
        'both',
        Promise.allSettled([crossed('a', 'b', hasA, hasB), crossed('b', 'a', hasB, hasA)]),
      )
      const failures = outcomes.filter((each) => each.status === 'rejected')
      expect(failures).toMatchObject([{ reason: { code: 'STORE_UNAVAILABLE', message: /ended inside/ } }])
      expect(await server.query('select count(*) from stock where id > 7')).toBe('2')
    })

    it('tells when the work has committed by itself', async () => {
      const careless = run('stock:7', (ask) => ask('commit'))
      expect(await rejectsWith('STORE_UNAVAILABLE', careless)).toMatchObject({ message: /ended inside/ })
    })

    it('rejects, and undoes everything, when its connection dies', async () => {
      const dying = run('stock:7', async (ask) => {
        await ask('update stock set pieces = 0')
        const [row] = await ask('select connection_id() as id')
        await server.query(`kill ${row?.['id']}`)
        await ask('select 1')
      })
      await expect(dying).rejects.toThrow()
      expect(
        await inTime(
          'the next one',
          run('stock:7', () => 'free'),
        ),
      ).toBe('free')
      expect(await pieces()).toBe(100)
    })

    it('keeps names apart that collations would not', async () => {
      const holder = await held('Door')
      for (const name of ['door', 'Door ', 'dóor', 'x'.repeat(3000)])
        expect(await run(name, () => 'free', { wait: 0 })).toBe('free')
      await holder.leave()
    })
  })

  it('refuses what it does not understand, before anything is sent', async () => {
    const pool = openPool('mysql2', server.url, 1)
    const lock = transactionLock(pool)
    await rejectsWith(
      'INVALID_ARGUMENT',
      lock.run('', () => {}),
    )
    await rejectsWith(
      'INVALID_ARGUMENT',
      lock.run('a', () => {}, { wait: -1 }),
    )
    await rejectsWith(
      'INVALID_ARGUMENT',
      lock.run('a', () => {}, { isolation: 'snapshot' as never }),
    )
    await pool.end()
  })
})
