import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import type { Connection, Push } from '../../src/contract/store.js'
import { Holdfast } from '../../src/index.js'
import { type PostgresOptions, type PostgresPool, postgres, sweep } from '../../src/stores/postgres/index.js'
import { eventually, inTime, rejectsWith, throwsWith, Watched } from '../../src/testing/conformance/checks.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { type PostgresServer, startPostgres } from '../servers/postgres.js'
import { TcpProxy } from '../servers/proxy.js'
import { DEAF_LIMIT_MS, takeTurnsDeaf } from './deaf-turns.js'
import { lineLength } from './line-length.js'
import { openPgPool, openPool } from './postgres/pools.js'

/** Longer than the first message to oneself may take on its way. */
const SLOW_ECHO_MS = 2500

function bound(target: object, key: string | symbol): unknown {
  const value = Reflect.get(target, key)
  return typeof value === 'function' ? value.bind(target) : value
}

describeOn('postgres', 'the PostgreSQL store', () => {
  let server: PostgresServer
  const endings: (() => unknown)[] = []
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterEach(async () => {
    for (const end of endings.splice(0).reverse()) await end()
  })
  afterAll(() => server.stop())

  const client = (from: string | PostgresPool = server.url, options: PostgresOptions = {}): Holdfast => {
    // Strict, so that everybody who waits does so in the store.
    const locks = new Holdfast(postgres(from, options), { space: `space ${Math.random()}`, order: 'strict' })
    endings.push(() => locks.close({ drain: 0 }))
    return locks
  }
  const raw = (
    from: string | PostgresPool,
    space: string,
    push: (news: Push) => void = () => {},
  ): Connection => {
    const connection = postgres(from).connect({ id: `client ${Math.random()}`, space, push })
    endings.push(() => connection.close())
    return connection
  }
  /** Of one user: whoever counts may still be there from the last time. */
  const connectionsOf = async (user: string): Promise<number> =>
    Number(await server.query(`select count(*) from pg_stat_activity where usename = '${user}'`))

  it('adds the routines of bounded claims to a schema that an older version has made', async () => {
    const schema = 'older'
    const [one, two] = [client(server.url, { schema }), client(server.url, { schema })]
    const hold = await one.mutex('door').acquire()
    for (const routine of ['take_bounded', 'bounded_calls', 'is_full'])
      await server.query(`drop function ${schema}.${routine}`)
    // A client that is open, and one that opens the schema anew.
    const door = (locks: Holdfast) => locks.mutex('door')
    await door(one).tryAcquire()
    const waiting = door(one).acquire({ maxWaiters: 1 })
    await eventually('a waiter', async () => (await lineLength(one)) === 1)
    await rejectsWith('LINE_FULL', door(one).acquire({ maxWaiters: 1 }))
    expect(await two.mutex('window').run(() => 'free', { maxWaiters: 1 })).toBe('free')
    expect(await server.query(`select version from ${schema}.meta`)).toBe('1')
    await hold.release()
    await (await waiting).release()
  })

  it.each(['pg', 'postgres'] as const)(
    'uses the pool of %s that it is given, and leaves it open',
    async (driver) => {
      const pool = openPool(driver, server.url, 3)
      endings.push(() => pool.end())
      const [one, two] = [client(pool), client(pool)]
      expect(await one.mutex('door').run((hold) => hold.fence)).toBeGreaterThan(0)
      expect(await two.mutex('door').run((hold) => hold.fence)).toBeGreaterThan(0)
      await Promise.all([one.close(), two.close()])
      const still =
        pool instanceof pg.Pool
          ? (await pool.query('select 1 as one')).rows
          : await pool.unsafe('select 1 as one')
      expect(still[0]).toEqual({ one: 1 })
    },
  )

  it('refuses what it cannot use before anything is sent, and says what to give', () => {
    const refuses = (from: unknown, options: PostgresOptions, message: RegExp): void => {
      throwsWith('INVALID_ARGUMENT', () => postgres(from as string, options))
      expect(() => postgres(from as string, options)).toThrow(message)
    }
    refuses(new pg.Client(server.url), {}, /Pool of pg/)
    refuses(undefined, {}, /takes a URL/)
    refuses('mysql://localhost/a', {}, /not a PostgreSQL URL/)
    refuses(`${server.url}?listen=no`, {}, /true, false or the URL/)
    refuses(server.url, { driver: 'mysql2' as 'pg' }, /pg, postgres/)
    refuses(server.url, { connections: 0 }, /from 1 on/)
    refuses(server.url, { schema: 'x'.repeat(64) }, /63 bytes/)
  })

  it('makes its schema once, however many come first at once', async () => {
    const schema = 'Ünusual "name"'
    const stores = Array.from({ length: 8 }, () => client(server.url, { schema, connections: 1 }))
    await Promise.all(stores.map((locks) => locks.mutex('door').run(() => {})))
    expect(await server.query(`select version from "Ünusual ""name""".meta`)).toBe('1')
  })

  it('makes its schema again when it was dropped while in use', async () => {
    const locks = client(server.url, { schema: 'dropped' })
    const hold = await locks.mutex('door').acquire()
    await server.query('drop schema dropped cascade')
    const next = await locks.mutex('other').acquire()
    expect(next.fence).toBeGreaterThan(hold.fence)
    expect(await hold.release()).toBe(false)
  })

  it('works for a user without the right to create, after somebody else has run its schema', async () => {
    for (const sql of ['create role app login', 'create database apps']) await server.query(sql)
    const url = server.url.replace('postgres@', 'app@').replace(/postgres$/, 'apps')
    const refused = await rejectsWith(
      'STORE_UNAVAILABLE',
      client(url)
        .mutex('door')
        .run(() => {}),
    )
    expect(refused.message).toMatch(/holdfast schema postgres/)
    const admin = new pg.Client(server.url.replace(/postgres$/, 'apps'))
    await admin.connect()
    endings.push(() => admin.end())
    const { schemaText } = await import('../../src/stores/postgres/schema.js')
    await admin.query(schemaText('holdfast'))
    await admin.query(`grant usage on schema holdfast to app; grant select, insert, update, delete on all tables in schema holdfast to app;
      grant execute on all functions in schema holdfast to app`)
    expect(
      await client(url)
        .mutex('door')
        .run(() => 'in'),
    ).toBe('in')
    const findings = await client(url).check()
    expect(findings.find(({ about }) => about === 'rights')).toMatchObject({ level: 'fine' })
  })

  it('says how many connections a process needs, and how many more processes have room', async () => {
    const connections = async (count: number) =>
      (await client(server.url, { connections: count }).check()).find(({ about }) => about === 'connections')
    const few = await connections(4)
    expect(few).toMatchObject({ level: 'fine' })
    expect(few?.text).toMatch(
      /^A process like this one opens up to 4, .* so \d+ more such processes have room\.$/,
    )
    expect(await connections(10_000)).toMatchObject({
      level: 'risk',
      text: expect.stringMatching(/Raise max_connections/),
    })
  })

  it('refuses a schema that a newer version has made', async () => {
    await client(server.url, { schema: 'newer' })
      .mutex('door')
      .run(() => {})
    await server.query('update newer.meta set version = 99')
    const error = await rejectsWith(
      'UNSUPPORTED',
      client(server.url, { schema: 'newer' })
        .mutex('door')
        .run(() => {}),
    )
    expect(error.message).toMatch(/update this one/)
  })

  it('tells a claim with a name that no message can carry, all the same', async () => {
    const name = 'ö'.repeat(4096)
    const told: Push[] = []
    const [one, two] = [raw(server.url, 'long'), raw(server.url, 'long', (news) => told.push(news))]
    await one.claim(claimOf(name, 'one:1'))
    expect(await two.claim(claimOf(name, 'two:1'))).toMatchObject({ status: 'waiting' })
    // Resolves when messages are heard: from then on a gap is news.
    await two.read('nothing', true)
    told.length = 0
    await one.release(name, 'one:1')
    await eventually('the news', () => told.length > 0)
    expect(told).toEqual([{ type: 'gap' }])
    const lines = []
    for await (const line of two.inspect({ prefix: 'ö' })) lines.push(line.resource)
    expect(lines).toEqual([name])
  })

  it('tells a holder with a block of fences, in another process, that somebody begins to wait', async () => {
    const told: Push[] = []
    const [holder, other] = [raw(server.url, 'wanted', (news) => told.push(news)), raw(server.url, 'wanted')]
    const beat = { resource: 'door', id: 'holder:1', leaseMs: 60_000, presenceMs: 60_000 }
    await holder.claim(claimOf('door', 'holder:1'))
    const isFree = async (): Promise<boolean> => {
      const [reply] = await holder.pulse([beat])
      return reply?.status === 'held' && reply.isWanted === false
    }
    // Said once messages are heard.
    await eventually('that nobody waits', isFree)
    const wanted = (): Push[] => told.filter(({ type }) => type === 'wanted')

    // With a single fence it has nothing to pass on.
    await other.claim(claimOf('door', 'other:1'))
    await other.release('door', 'other:1')
    const [reply] = await holder.pulse([{ ...beat, block: 4 }])
    expect(reply).toMatchObject({ status: 'held', isWanted: false })
    await other.claim(claimOf('door', 'other:2'))
    await other.claim(claimOf('door', 'other:3'))
    await eventually('the news', () => wanted().length > 0)
    expect(await isFree()).toBe(false)
    expect(wanted()).toEqual([{ type: 'wanted', resource: 'door', id: 'holder:1' }])
  })

  it('tells a holder with a block of fences, in another process, that a try was refused', async () => {
    const store = postgres(server.url)
    const told: Push[] = []
    const push = (news: Push): number => told.push(news)
    const holder = store.connect({ id: `client ${Math.random()}`, space: 'tried', push })
    endings.push(() => holder.close())
    const other = raw(server.url, 'tried')
    const attempt = (id: string) => other.claim(claimOf('door', id, { mode: 'try' }))
    await holder.claim(claimOf('other door', 'holder:1'))
    await eventually('messages', () => store.capabilities.tellsWanted === true)
    const wanted = (): Push[] => told.filter(({ type }) => type === 'wanted')

    // The first claim makes the line. From then on the fast path takes a free lock, and tells nobody.
    expect(await attempt('other:0')).toMatchObject({ status: 'granted' })
    await other.release('door', 'other:0')
    expect(await attempt('other:1')).toMatchObject({ status: 'granted' })
    const sole = "select sole from holdfast.line where space = 'tried' and resource = 'door'"
    expect(await server.query(sole)).toBe('other:1')
    await other.release('door', 'other:1')

    // With a single fence it has nothing to pass on.
    await holder.claim(claimOf('door', 'holder:2'))
    expect(await attempt('other:2')).toEqual({ status: 'refused', reason: 'busy' })
    await holder.release('door', 'holder:2')

    await holder.claim(claimOf('door', 'holder:3', { block: 8 }))
    expect(await attempt('other:3')).toEqual({ status: 'refused', reason: 'busy' })
    await eventually('the news', () => wanted().length > 0)
    expect(wanted()).toEqual([{ type: 'wanted', resource: 'door', id: 'holder:3' }])
    expect(await holder.release('door', 'holder:3')).toBe(true)
  })

  it('leaves it open whether others wait where it would not hear of them', async () => {
    const deaf = raw(`${server.url}?listen=false`, 'deaf')
    expect(postgres(`${server.url}?listen=false`).capabilities.tellsWanted).toBe(false)
    const claim = claimOf('door', 'deaf:1', { block: 4 })
    expect(await deaf.claim(claim)).not.toHaveProperty('isWanted')
    expect((await deaf.pulse([claim]))[0]).not.toHaveProperty('isWanted')
  })

  it('takes no more connections than its pool has, whatever the number of waiters, and leaves room for other queries', async () => {
    await server.query('create role many login superuser')
    const pool = openPgPool(server.url.replace('postgres@', 'many@'), 5)
    endings.push(() => pool.end())
    const locks = client(pool)
    const first = await locks.mutex('door').acquire()
    const order: number[] = []
    const all = Array.from({ length: 1000 }, (_each, index) =>
      locks.mutex('door').run(async () => {
        order.push(index)
        if (index % 100 === 0) expect(await connectionsOf('many')).toBeOneOf([1, 2, 3, 4, 5])
      }),
    )
    await eventually('all in line', async () => (await lineLength(locks)) === 1000)
    expect((await pool.query('select 42 as answer')).rows).toEqual([{ answer: 42 }])
    await first.release()
    await Promise.all(all)
    expect(order).toEqual(Array.from({ length: 1000 }, (_each, index) => index))
  }, 120_000)

  it('works with a pool of one connection, without messages', async () => {
    const locks = client(server.url, { connections: 1 })
    const hold = await locks.mutex('door').acquire()
    const next = new Watched(locks.mutex('door').acquire())
    await eventually('a waiter', async () => (await lineLength(locks)) === 1)
    await hold.release()
    await inTime('the next one', next.promise)
    const { messages } = Object.fromEntries((await locks.check()).map((each) => [each.about, each]))
    expect(messages).toMatchObject({ level: 'risk' })
  })

  it.each([{ listen: false }, { connections: 1 }] as const)(
    'serves each waiter of a line that moves on, also where no message is heard: %o',
    (options) => takeTurnsDeaf(() => postgres(server.url, options)),
    DEAF_LIMIT_MS,
  )

  it('reports once that neither of its two packages or addresses can be used', async () => {
    const strays: unknown[] = []
    const note = (error: unknown): void => void strays.push(error)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    const url = 'postgres://127.0.0.1:99999/app'
    const connection = postgres(url, { driver: 'postgres', listen: url }).connect({
      id: 'client',
      space: 's',
      push: () => {},
    })
    endings.push(() => connection.close())
    await rejectsWith('STORE_UNAVAILABLE', connection.pulse([]))
    await setTimeout(0)
    expect(strays).toEqual([])
  })

  it('hears messages soon after a server that was slow at first', async () => {
    const pool = openPgPool(server.url, 5)
    endings.push(() => pool.end())
    const connect = pool.connect.bind(pool)
    let isSlow = true
    const slow = new Proxy(pool, {
      get: (target, key) => (key === 'connect' ? connectSlowly : Reflect.get(target, key)),
    })
    const connectSlowly = async () => {
      const inner = await connect()
      return new Proxy(inner, {
        get(target, key) {
          if (key !== 'query') return bound(target, key)
          return async (statement: { text: string }) => {
            const isEcho = statement.text.includes('pg_notify')
            if (isEcho && isSlow) await setTimeout(SLOW_ECHO_MS)
            isSlow &&= !isEcho
            return inner.query(statement)
          }
        },
      })
    }
    const store = postgres(slow)
    const locks = new Holdfast(store, { space: `space ${Math.random()}` })
    endings.push(() => locks.close({ drain: 0 }))
    await locks.mutex('door').run(() => {})
    await eventually('messages', () => store.capabilities.askNextEveryMs === null, 30_000)
  }, 60_000)

  it('looks again when the answer that named the next claim was lost', async () => {
    const proxy = await TcpProxy.start(server.port)
    endings.push(() => proxy.stop())
    const pushes: Push[] = []
    const url = server.url.replace(/:\d+\//, `:${proxy.port}/`)
    const connection = raw(url, 'lost answers', (news) => void pushes.push(news))
    for (const id of ['one', 'two']) await connection.claim(claimOf('lost', id, { presenceMs: 600_000 }))
    pushes.length = 0
    proxy.mode = 'lose replies'
    const release = async (): Promise<unknown> => connection.release('lost', 'one')
    const released = rejectsWith('STORE_UNAVAILABLE', release())
    const waits = "select count(*) from holdfast.claim where fence is null and id = 'two'"
    await eventually('the grant', async () => (await server.query(waits)) === '0')
    proxy.mode = 'pass'
    await released
    await connection.release('another', 'one')
    expect(pushes).toContainEqual({ type: 'gap' })
  })

  it('sweeps what nobody uses any more, and nothing else', async () => {
    const url = `${server.url}?schema=swept`
    const connection = raw(url, 'space')
    await connection.claim(claimOf('gone', 'a:1', { leaseMs: 1 }))
    await connection.claim(claimOf('held', 'a:2'))
    await connection.pulse([claimOf('held', 'a:2')])
    await connection.resize('pinned', 2, 3)
    await connection.write({ key: 'ended', expect: null, value: 'x', retentionMs: 1 })
    await connection.write({ key: 'kept', expect: null, value: 'x', retentionMs: null })
    const later = 'swept.clock(null) + 3600000000'
    await server.query(`update swept.claim set expires = expires + 7200000000 where id = 'a:2'`)
    expect(await server.query(`select swept.sweep(60000000, 1000, ${later})`)).toBe('1')
    expect(await server.query("select string_agg(resource, ' ' order by resource) from swept.line")).toBe(
      'held pinned',
    )
    expect(await server.query('select count(*) from swept.claim')).toBe('1')
    expect(await server.query("select string_agg(value, ' ') from swept.state")).toBe('x')
  })

  it('keeps a counter that is ahead of the clock until the clock has passed it', async () => {
    const connection = raw(`${server.url}?schema=ahead`, 'space')
    const fenceOf = async (name: string, id: string, floor = 0) => {
      const reply = await connection.claim(claimOf(name, id, { floor }))
      await connection.release(name, id)
      return reply.status === 'granted' ? reply.fence : Number.NaN
    }
    await fenceOf('floor', 'a:2', (await fenceOf('other', 'a:1')) + 30_000_000)
    const own = await connection.claim(claimOf('fences', 'a:3'))
    const first = (own.status === 'granted' ? own.fence : Number.NaN) + 600_000_000
    const beat = { resource: 'fences', id: 'a:3', leaseMs: 60_000, presenceMs: 60_000 }
    await connection.pulse([{ ...beat, fences: { first, count: 8 } }])
    await connection.release('fences', 'a:3')
    const left = async (afterSeconds: number) => {
      await server.query(
        `select ahead.sweep(1000000, 1000, (${first} - 600000000) + ${afterSeconds} * 1000000)`,
      )
      return server.query("select string_agg(resource, ' ' order by resource) from ahead.line")
    }
    expect(await left(29)).toBe('fences floor')
    expect(await left(599)).toBe('fences')
    expect(await left(602)).toBe('')
  })

  it('sweeps when it is told to', async () => {
    const url = `${server.url}?schema=swept_by_hand`
    const connection = raw(url, 'space')
    const names = Array.from({ length: 1500 }, (_each, index) => `name ${index}`)
    await Promise.all(names.map((name) => connection.claim(claimOf(name, `a:${name}`, { leaseMs: 1 }))))
    await connection.claim(claimOf('held', 'a:held', { leaseMs: 120_000 }))
    // As if all that had been two minutes ago.
    await server.query('update swept_by_hand.line set seen = seen - 120000000, last = last - 120000000')
    expect(await sweep(url)).toBe(1500)
    expect(await server.query('select resource from swept_by_hand.line')).toBe('held')
    const pool = openPool('pg', server.url, 2)
    endings.push(() => pool.end())
    expect(await sweep(pool, { schema: 'swept_by_hand' })).toBe(0)
  })

  it('sweeps by itself for as long as much is left', async () => {
    const schema = 'swept_by_itself'
    const timers: (() => void)[] = []
    const env = {
      ...systemEnv,
      timer: (ms: number, run: () => void, options: { keepAlive: boolean }) => {
        if (ms < 25_000 || ms > 70_000 || options.keepAlive) return systemEnv.timer(ms, run, options)
        timers.push(run)
        return () => {}
      },
    }
    const store = postgres(server.url, { schema, env })
    const connection = store.connect({ id: 'client', space: 'space', push: () => {} })
    endings.push(() => connection.close())
    await connection.pulse([])
    await server.query(
      `insert into ${schema}.state (key, space, name, version, value, expires, last) select sha256(i::text::bytea), 's', i::text, 0, '', 0, 0 from generate_series(1, 2500) i`,
    )
    await server.query(`update ${schema}.meta set swept = 0`)
    for (const run of timers.splice(0)) run()
    await eventually(
      'the sweep',
      async () => (await server.query(`select count(*) from ${schema}.state`)) === '0',
    )
  })

  it('goes on in a stricter isolation than it likes', async () => {
    await server.query(
      "create role strict login superuser; alter role strict set default_transaction_isolation = 'serializable'",
    )
    const url = server.url.replace('postgres@', 'strict@')
    const stores = Array.from({ length: 4 }, () => new Holdfast(postgres(url, { connections: 2 })))
    endings.push(() => Promise.all(stores.map((locks) => locks.close({ drain: 0 }))))
    let inside = 0
    const runs = stores.flatMap((locks) =>
      Array.from({ length: 5 }, () => locks.mutex('strict').run(() => inside++)),
    )
    await Promise.all(runs)
    expect(inside).toBe(20)
    const findings = await stores[0]?.check()
    expect(findings?.find(({ about }) => about === 'isolation')).toMatchObject({ level: 'risk' })
  })
})
