import { createPool as createCallbackPool } from 'mysql2'
import { createConnection, createPool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import type { HoldfastError } from '../../src/base/errors.js'
import type { Connection, Push } from '../../src/contract/store.js'
import { Holdfast } from '../../src/index.js'
import { type MysqlOptions, type MysqlPool, mysql, sweep } from '../../src/stores/mysql/index.js'
import { keyOf } from '../../src/stores/mysql/values.js'
import { rejectsWith } from '../../src/testing/conformance/checks.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { type MariadbServer, startMariadb } from '../servers/mariadb.js'
import { TcpProxy } from '../servers/proxy.js'

describe('a MySQL URL', () => {
  it.each([
    ['mysql://localhost', /names no database/],
    ['mysql:///app', /not a MySQL URL/],
    ['postgres://localhost/app', /not a MySQL URL/],
    ['mysql://localhost/app?sslmode=require', /no option 'sslmode'/],
    ['mysql://localhost/app?ssl=yes', /must be true or false/],
    ['mysql://localhost/app?driver=mysql', /must be one of mysql2, mariadb/],
    ['mysql://localhost/app?connections=none', /whole number/],
    ['mysql://localhost/app?prefix=a%20b', /letters, digits or underscores/],
    ['mysql://app:100%@localhost/app', /stray %/],
  ])('%s is refused before anything is sent', (url, reason) => {
    expect(() => mysql(url)).toThrow(reason)
  })

  it('is not shown with its password', () => {
    expect(() => mysql('mysql://app:secret@/app')).toThrow(/^(?!.*secret)/)
  })

  it('is not needed with a pool, whose options are its own', () => {
    const pool = createPool('mysql://localhost/app')
    onTestFinished(() => pool.end())
    expect(() => mysql(pool, { driver: 'mysql2' })).toThrow(/a pool of your own is used as it is/)
    expect(() => mysql({} as MysqlPool)).toThrow(/takes a URL.*or a pool/)
  })
})

describeOn('mariadb', 'the MySQL store', () => {
  let server: MariadbServer
  beforeAll(async () => {
    server = await startMariadb()
  })
  afterAll(() => server.stop())

  function connect(options?: MysqlOptions, from: string | MysqlPool = server.url): Connection {
    const space = systemEnv.id()
    const connection = mysql(from, options).connect({ id: systemEnv.id(), space, push: () => {} })
    onTestFinished(() => connection.close())
    return connection
  }

  it('adds the routine of bounded claims to a schema that an older version has made', async () => {
    const prefix = 'older'
    const connection = connect({ prefix })
    await connection.claim(claimOf('door', 'one'))
    await server.query(`drop procedure ${prefix}_bounded_calls`)
    const claim = async (id: string): Promise<unknown> =>
      connection.claim(claimOf('door', id, { maxWaiters: 1 }))
    expect(await claim('two')).toMatchObject({ status: 'waiting' })
    expect(await claim('three')).toEqual({ status: 'refused', reason: 'full' })
    expect(await server.query(`select version from ${prefix}_version`)).toBe('1')
  })

  it('makes its schema once, however many come first', async () => {
    const prefix = 'together'
    const many = Array.from({ length: 8 }, () => connect({ prefix }))
    const replies = await Promise.all(many.map((each) => each.claim(claimOf('door', systemEnv.id()))))
    expect(replies.map((reply) => reply.status)).toEqual(Array(8).fill('granted'))
    expect(await server.query(`select count(*) from ${prefix}_version`)).toBe('1')
  })

  it('makes again what was dropped', async () => {
    const prefix = 'dropped'
    const connection = connect({ prefix })
    await connection.claim(claimOf('door', 'one'))
    await server.query(`drop procedure ${prefix}_join; drop table ${prefix}_claim, ${prefix}_line`)
    expect(await connection.claim(claimOf('door', 'two'))).toMatchObject({ status: 'granted' })
    expect(
      await connection.pulse([{ resource: 'door', id: 'one', leaseMs: 1000, presenceMs: 1000 }]),
    ).toEqual([{ status: 'gone' }])
  })

  it('says what is left of a lease, also to a beat that asks for less', async () => {
    const connection = connect()
    // The first claim makes the line; from then on a hold that is alone is renewed in its row.
    await connection.claim(claimOf('door', 'one'))
    await connection.release('door', 'one')
    await connection.claim(claimOf('door', 'two', { leaseMs: 600_000 }))
    const beat = { resource: 'door', id: 'two', leaseMs: 1000, presenceMs: 1000 }
    const [reply] = await connection.pulse([beat])
    expect(reply).toMatchObject({ status: 'held' })
    expect(reply?.status === 'held' && reply.leaseMs).toBeGreaterThan(1000)
  })

  it('does not take a renewal that waited for a lock for a clock that was set back', async () => {
    const prefix = 'renewed'
    const space = systemEnv.id()
    const connection = mysql(server.url, { prefix }).connect({ id: 'client', space, push: () => {} })
    const stranger = await createConnection(server.url)
    onTestFinished(async () => {
      await connection.close()
      await stranger.end()
    })
    // In the order in which a renewal locks them.
    const [first = '', second = ''] = ['a', 'b'].toSorted((a, b) =>
      keyOf(space, a) < keyOf(space, b) ? -1 : 1,
    )
    for (const name of [first, second]) {
      await connection.claim(claimOf(name, 'old'))
      await connection.release(name, 'old')
      await connection.claim(claimOf(name, name, { leaseMs: 60_000 }))
    }
    await stranger.query('begin')
    await stranger.query(`select * from ${prefix}_line where line = X'${keyOf(space, first)}' for update`)
    const beatOf = (name: string) => ({ resource: name, id: name, leaseMs: 120_000, presenceMs: 60_000 })
    const both = connection.pulse([beatOf(first), beatOf(second)])
    const held = { status: 'held', leaseMs: 120_000 }
    expect(await connection.pulse([beatOf(second)])).toMatchObject([held])
    await stranger.query('rollback')
    expect(await both).toMatchObject([{ status: 'held' }, { status: 'held' }])
    expect(await server.query(`select max(shift) from ${prefix}_line`)).toBe('0')
    // A clock that was really set back.
    await server.query(`update ${prefix}_line set seen = seen + 3600000000, soonest = soonest + 3600000000`)
    expect(await connection.pulse([beatOf(first), beatOf(second)])).toMatchObject([held, held])
  })

  it('refuses the schema of a newer version', async () => {
    const prefix = 'newer'
    await connect({ prefix }).pulse([])
    await server.query(`update ${prefix}_version set version = 99`)
    await expect(connect({ prefix }).pulse([])).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringContaining('update this one'),
    })
  })

  it('says what a user lacks, and works with what the page names', async () => {
    await server.query(
      'create user locks@localhost identified by "x"; grant select on test.* to locks@localhost',
    )
    const url = server.url.replace('root@', 'locks:x@')
    const error: HoldfastError = await connect({ prefix: 'limited' }, url)
      .pulse([])
      .then(
        () => expect.fail('allowed'),
        (reason) => reason,
      )
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
    expect(error.message).toContain('holdfast schema mysql')
    await server.query('grant select, insert, update, delete, execute on test.* to locks@localhost')
    await server.query('grant create, index, create routine, alter routine on test.* to locks@localhost')
    const allowed = connect({ prefix: 'limited' }, url)
    expect(await allowed.claim(claimOf('door', 'one'))).toMatchObject({ status: 'granted' })
    await server.query('revoke create, index, create routine, alter routine on test.* from locks@localhost')
    const user = connect({ prefix: 'limited', createSchema: false }, url)
    expect(await user.claim(claimOf('door', 'one'))).toMatchObject({ status: 'granted' })
  })

  it('tells wrong passwords and databases from a server that is away', async () => {
    const wrong = connect({}, server.url.replace('root@', 'root:wrong@'))
    await expect(wrong.pulse([])).rejects.toMatchObject({
      retryable: false,
      message: /refused the user name/,
    })
    const nowhere = connect({}, server.url.replace('/test', '/nowhere'))
    await expect(nowhere.pulse([])).rejects.toMatchObject({ retryable: false, message: /no such database/ })
    for (const driver of ['mysql2', 'mariadb'] as const) {
      const away = connect({ driver }, 'mysql://root@127.0.0.1:1/test')
      await expect(away.pulse([])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    }
  })

  it('tells of a grant also where the claim joined and was promoted in one turn', async () => {
    const pushes: Push[] = []
    const context = {
      id: systemEnv.id(),
      space: systemEnv.id(),
      push: (news: Push) => void pushes.push(news),
    }
    const connection = mysql(server.url).connect(context)
    onTestFinished(() => connection.close())
    await connection.claim(claimOf('door', 'first'))
    // While this one is under way, the next two wait for it, and then travel together.
    const again = connection.claim(claimOf('door', 'first'))
    const joined = connection.claim(claimOf('door', 'second'))
    const left = connection.release('door', 'first')
    expect((await again).status).toBe('granted')
    expect((await joined).status).toBe('waiting')
    expect(await left).toBe(true)
    await expect.poll(() => pushes).toMatchObject([{ type: 'granted', resource: 'door', id: 'second' }])
  })

  it('looks again when the answer that named the next claim was lost', async () => {
    const proxy = await TcpProxy.start(server.port)
    const space = systemEnv.id()
    let pushes: Push[] = []
    const push = (news: Push): void => void pushes.push(news)
    const other = mysql(server.url).connect({ id: 'other', space, push: () => {} })
    const url = server.url.replace(/:\d+\//, `:${proxy.port}/`)
    const connection = mysql(url, { connections: 2 }).connect({ id: 'client', space, push })
    onTestFinished(async () => {
      await other.close()
      await connection.close()
      await proxy.stop()
    })
    await other.claim(claimOf('door', 'first'))
    for (const id of ['one', 'two']) await connection.claim(claimOf('door', id, { presenceMs: 600_000 }))
    // A claim that has waited is released by one call.
    await other.release('door', 'first')
    await expect.poll(() => pushes, { timeout: 30_000 }).toHaveLength(1)
    pushes = []
    proxy.mode = 'lose replies'
    const release = async (): Promise<unknown> => connection.release('door', 'one')
    const released = rejectsWith('STORE_UNAVAILABLE', release())
    const waits = `select count(*) from holdfast_claim where fence = 0 and id = 'two'`
    await expect.poll(() => server.query(waits), { timeout: 30_000 }).toBe('0')
    proxy.mode = 'pass'
    await released
    await expect.poll(() => pushes, { timeout: 30_000 }).toEqual([{ type: 'gap' }])
  })

  it('does not take the news of an earlier stay in line for those of this one', async () => {
    const space = systemEnv.id()
    let pushes: Push[] = []
    const push = (news: Push): void => void pushes.push(news)
    // Two store values: they hear of each other by the table of news only.
    const other = mysql(server.url).connect({ id: systemEnv.id(), space, push: () => {} })
    const mine = mysql(server.url).connect({ id: systemEnv.id(), space, push })
    onTestFinished(async () => {
      await other.close()
      await mine.close()
    })
    await other.claim(claimOf('door', 'first'))
    await mine.claim(claimOf('door', 'mine'))
    await other.release('door', 'first')
    await mine.release('door', 'mine')
    await other.claim(claimOf('door', 'second'))
    const again = await mine.claim(claimOf('door', 'mine'))
    if (again.status !== 'waiting') expect.fail(`the claim is ${again.status}`)
    pushes = []
    await other.release('door', 'second')
    await expect.poll(() => pushes, { timeout: 30_000 }).toHaveLength(1)
    const [news] = pushes
    expect(news?.type === 'granted' && news.fence).toBeGreaterThan(again.grantsAbove)
  })

  it('keeps names apart that collations would not', async () => {
    const connection = connect()
    const long = 'x'.repeat(5000)
    const names = ['Door', 'door', 'door ', 'dóor', 'do\u0301or', 'd\0or', `${long}a`, `${long}b`, '%', "'\\"]
    for (const name of names)
      expect(await connection.claim(claimOf(name, `of ${name}`.slice(0, 50) + name.length))).toMatchObject({
        status: 'granted',
      })
    const seen: string[] = []
    for await (const line of connection.inspect({ prefix: '' })) seen.push(line.resource)
    expect(seen.toSorted()).toEqual(names.toSorted())
    const withPrefix: string[] = []
    for await (const line of connection.inspect({ prefix: 'door' })) withPrefix.push(line.resource)
    expect(withPrefix).toEqual(['door', 'door '])
  })

  it('shows more lines than fit into one page', async () => {
    const connection = connect()
    const names = Array.from({ length: 230 }, (_, number) => `line ${number}`)
    await Promise.all(names.map((name) => connection.claim(claimOf(name, name))))
    const seen: string[] = []
    for await (const line of connection.inspect({ prefix: 'line ' })) seen.push(line.resource)
    expect(seen.toSorted()).toEqual(names.toSorted())
  })

  it('uses a pool of yours, of either kind, and leaves it open', async () => {
    const pool = createPool({ uri: server.url, connectionLimit: 2 })
    const callbacks = createCallbackPool({ uri: server.url, connectionLimit: 2, rowsAsArray: true })
    onTestFinished(async () => {
      await pool.end()
      await callbacks.promise().end()
    })
    for (const each of [pool, callbacks]) {
      const locks = new Holdfast(mysql(each))
      expect(await locks.mutex(systemEnv.id()).run(() => 'done')).toBe('done')
      await locks.close()
    }
    expect((await pool.query('select 1 as one'))[0]).toEqual([{ one: 1 }])
  })

  it('refuses connections that do not commit by themselves', async () => {
    const pool = createPool({ uri: server.url, connectionLimit: 1 })
    onTestFinished(() => pool.end())
    pool.on('connection', (connection) => void connection.query('set autocommit = 0'))
    await expect(connect({}, pool).claim(claimOf('door', 'one'))).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringContaining('autocommit'),
    })
  })

  it('works where the server is set up in odd ways', async () => {
    const odd = await startMariadb({
      args: [
        '--sql-mode=ANSI,NO_BACKSLASH_ESCAPES',
        '--transaction-isolation=SERIALIZABLE',
        '--default-time-zone=+05:30',
      ],
    })
    onTestFinished(() => odd.stop())
    const locks = new Holdfast(mysql(odd.url))
    onTestFinished(() => locks.close({ drain: 0 }))
    const first = await locks.mutex("it's\\").acquire({ label: "it's\\" })
    const next = locks.mutex("it's\\").acquire()
    await expect
      .poll(async () => {
        for await (const { waiters } of locks.inspect()) return waiters.length
        return 0
      })
      .toBe(1)
    expect(Math.abs(first.fence / 1000 - systemEnv.wallMs())).toBeLessThan(60_000)
    await first.release()
    expect((await next).fence).toBeGreaterThan(first.fence)
  })

  it('removes what nobody uses any more', async () => {
    const prefix = 'swept'
    const connection = connect({ prefix })
    await connection.claim(claimOf('left', 'one', { leaseMs: 1 }))
    await connection.claim(claimOf('left', 'two', { leaseMs: 1, presenceMs: 1 }))
    await connection.write({ key: 'ended', expect: null, value: 'x', retentionMs: 1 })
    await connection.claim(claimOf('kept', 'one'))
    // Twice: what has lapsed leaves a line that is empty, and kept for the retention.
    for (let round = 0; round < 2; round++) {
      await server.query('select sleep(0.01)')
      await server.query(`update ${prefix}_version set swept = 0; call ${prefix}_sweep(60000000, 1, null)`)
    }
    expect(await server.query(`select resource from ${prefix}_line`)).toBe('kept')
    expect(await server.query(`select count(*) from ${prefix}_claim`)).toBe('1')
    expect(await server.query(`select count(*) from ${prefix}_state`)).toBe('0')
  })

  it('keeps a counter that is ahead of the clock until the clock has passed it', async () => {
    const prefix = 'ahead'
    const connection = connect({ prefix })
    const fenceOf = async (name: string, id: string, floor = 0) => {
      const reply = await connection.claim(claimOf(name, id, { floor }))
      await connection.release(name, id)
      return reply.status === 'granted' ? reply.fence : Number.NaN
    }
    await fenceOf('floor', 'one', (await fenceOf('other', 'one')) + 30_000_000)
    const own = await connection.claim(claimOf('fences', 'one'))
    const first = (own.status === 'granted' ? own.fence : Number.NaN) + 600_000_000
    const beat = { resource: 'fences', id: 'one', leaseMs: 60_000, presenceMs: 60_000 }
    await connection.pulse([{ ...beat, fences: { first, count: 8 } }])
    await connection.release('fences', 'one')
    const left = async (afterSeconds: number) => {
      const at = first - 600_000_000 + afterSeconds * 1_000_000
      await server.query(`call ${prefix}_sweep(0, 1000000, ${at})`)
      return server.query(`select group_concat(resource order by resource separator ' ') from ${prefix}_line`)
    }
    expect(await left(29)).toBe('fences floor')
    expect(await left(599)).toBe('fences')
    expect(await left(602)).toBe('NULL')
  })

  it('is swept when told, more than fits into one go, and what is in use stays', async () => {
    const prefix = 'told'
    const connection = connect({ prefix })
    await connection.claim(claimOf('kept', 'one'))
    await server.query(
      `insert into ${prefix}_line (line, space, resource, last, seen, shift, used, soonest, last_place, capacity) select unhex(sha2(seq, 256)), 's', seq, 0, 0, 0, 0, 9007199254740991, 0, 0 from seq_1_to_1200`,
    )
    await sweep(server.url, { prefix })
    expect(await server.query(`select resource from ${prefix}_line`)).toBe('kept')
  })

  it('sweeps by itself for as long as much is left', async () => {
    const prefix = 'by_itself'
    const timers: (() => void)[] = []
    const env = {
      ...systemEnv,
      timer: (ms: number, run: () => void, options: { keepAlive: boolean }) => {
        if (ms < 25_000 || ms > 70_000 || options.keepAlive) return systemEnv.timer(ms, run, options)
        timers.push(run)
        return () => {}
      },
    }
    const connection = connect({ prefix, env })
    await connection.claim(claimOf('kept', 'one'))
    await server.query(
      `insert into ${prefix}_state (state, space, name, value, version, last, expires) select unhex(sha2(seq, 256)), 's', seq, '', 0, 0, 0 from seq_1_to_1200`,
    )
    for (const run of timers.splice(0)) run()
    await expect
      .poll(() => server.query(`select count(*) from ${prefix}_state`), { timeout: 30_000 })
      .toBe('0')
  })

  it('keeps the news that is made while it is swept', async () => {
    const prefix = 'news_kept'
    await connect({ prefix }).claim(claimOf('kept', 'one'))
    await server.query(
      `insert into ${prefix}_news values ('c', 2000000, unhex(sha2('', 256)), 'x', 'granted', 1); call ${prefix}_sweep(0, 60000000, 1000000)`,
    )
    expect(await server.query(`select count(*) from ${prefix}_news`)).toBe('1')
  })

  it('finds nothing wrong with an ordinary server', async () => {
    const findings = (await connect().check?.()) ?? []
    expect(findings.filter(({ level }) => level === 'fault')).toEqual([])
    expect(findings.map(({ about }) => about)).toContain('version')
  })
})
