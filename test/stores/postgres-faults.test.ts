import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterEach, expect, it } from 'vitest'
import { type Hold, Holdfast } from '../../src/index.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { eventually, inTime, now, pass, rejectsWith, Watched } from '../../src/testing/conformance/checks.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { noTinyDisk, TinyDisk } from '../faults/tiny-disk.js'
import { describeOn } from '../servers/availability.js'
import { type PostgresServer, startPostgres } from '../servers/postgres.js'
import { WallClock } from '../servers/wall-clock.js'
import { openPgPool } from './postgres/pools.js'

const FROZEN = fileURLToPath(new URL('postgres/frozen.mjs', import.meta.url))

describeOn('postgres', 'the PostgreSQL store, in trouble', () => {
  const endings: (() => unknown)[] = []
  afterEach(async () => {
    for (const end of endings.splice(0).reverse()) await end()
  })

  async function start(options: Parameters<typeof startPostgres>[0] = {}): Promise<PostgresServer> {
    const server = await startPostgres(options)
    endings.push(() => server.stop())
    return server
  }
  const client = (
    { url }: PostgresServer,
    options: ConstructorParameters<typeof Holdfast>[1] = {},
  ): Holdfast => {
    const locks = new Holdfast(postgres(url), { order: 'strict', ...options })
    endings.push(() => locks.close({ drain: 0 }).catch(() => {}))
    return locks
  }
  async function waiters(locks: Holdfast): Promise<number> {
    for await (const line of locks.inspect({ prefix: 'door' })) return line.waiters.length
    return 0
  }

  it.each([
    ['all its connections are terminated', (server: PostgresServer) => server.dropClients()],
    ['it is killed and started again', (server: PostgresServer) => server.restart({ keepData: true })],
    [
      'it stands still for 10 seconds',
      async (server: PostgresServer) => {
        server.pause()
        await pass(10_000)
        server.resume()
      },
    ],
  ])(
    'keeps holds, places and fences when %s',
    async (_title, harm) => {
      const server = await start()
      const [one, two] = [client(server, { storeTimeout: '40s' }), client(server, { storeTimeout: '40s' })]
      const hold = await one.mutex('door').acquire({ lease: '60s' })
      const waiting = Array.from({ length: 5 }, () =>
        two.mutex('door').run(({ fence }) => fence, { lease: '60s' }),
      )
      await eventually('all in line', async () => (await waiters(one)) === 5)
      // A place is on disk only a moment later. One that a crash forgets is taken anew, but in another order.
      await server.query('checkpoint')
      await harm(server)
      expect(await inTime('the release', hold.release(), 40_000)).toBe(true)
      const fences = await inTime('all others', Promise.all(waiting), 60_000)
      expect([hold.fence, ...fences]).toEqual([hold.fence, ...fences].toSorted((a, b) => a - b))
      expect(new Set([hold.fence, ...fences]).size).toBe(6)
      // Messages are heard again: a hand-off between the two needs no question.
      const last = await one.mutex('door').acquire()
      const next = new Watched(two.mutex('door').acquire())
      await eventually('the next in line', async () => (await waiters(one)) === 1)
      await last.release()
      expect((await inTime('the hand-off', next.promise)).fence).toBeGreaterThan(last.fence)
    },
    120_000,
  )

  it.each(['pg', 'postgres'] as const)('sends nothing after it was closed, by %s', async (driver) => {
    const server = await start()
    const store = postgres(server.url, { driver, connections: 2 })
    const connection = store.connect({ id: 'one', space: 'default', push: () => {} })
    await connection.pulse([])
    const stranger = new pg.Client(server.url)
    await stranger.connect()
    endings.push(() => stranger.end())
    await stranger.query('begin; lock table holdfast.line')
    // More than may be under way at once.
    const claims = ['a', 'b', 'c', 'd'].map((name) => connection.claim(claimOf(name, `one:${name}`)))
    const refused = Promise.allSettled(claims)
    await eventually('a claim under way', async () => {
      const waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
      return (await server.query(waiting)) !== '0'
    })
    await inTime('the end', connection.close())
    await stranger.query('commit')
    const outcomes = await inTime('the answers', refused)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toEqual([])
    const resources = (await server.query('select resource from holdfast.line')).split('\n')
    expect(resources).not.toContain('d')
  })

  it('gives the connection for messages back that came after its client had left', async () => {
    const server = await start()
    const pool = new pg.Pool({ connectionString: server.url, max: 5, idleTimeoutMillis: 0 })
    pool.on('error', () => {})
    endings.push(() => void pool.end())
    const connect = (id: string) => postgres(pool).connect({ id, space: 'default', push: () => {} })
    const first = connect('first')
    const claim = Promise.resolve(first.claim(claimOf('a', 'first:a'))).catch(() => {})
    const second = connect('second')
    await Promise.all([first.close(), second.close()])
    const third = connect('third')
    await third.claim(claimOf('b', 'third:b'))
    await claim
    const listening = "select count(*) from pg_stat_activity where query like 'LISTEN%'"
    await eventually('somebody listens', async () => (await server.query(listening)) !== '0')
    await third.close()
    await eventually('all connections back', () => pool.idleCount === pool.totalCount, 5000)
  })

  it('makes a pulse again that the server undid for a deadlock', async () => {
    const server = await start({ args: ['-c', 'deadlock_timeout=3s'] })
    const connection = postgres(server.url).connect({ id: 'one', space: 'default', push: () => {} })
    endings.push(() => connection.close())
    const claims = ['a', 'b'].map((name) => claimOf(name, `one:${name}`))
    for (const claim of claims) await connection.claim(claim)
    const [first, second] = (await server.query('select resource from holdfast.line order by key')).split(
      '\n',
    )
    const stranger = new pg.Client(server.url)
    await stranger.connect()
    endings.push(() => stranger.end())
    const lock = (name: string | undefined): Promise<unknown> =>
      stranger.query('select * from holdfast.line where resource = $1 for update', [name])
    // Each looks for a deadlock once, so long after it began to wait: the pulse before the stranger, so it is the one that is undone.
    await stranger.query("begin; set local deadlock_timeout = '20s'")
    await lock(second)
    const pulse = connection.pulse(claims)
    await eventually('the pulse waiting', async () => {
      const waiting =
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%pulse%'"
      return (await server.query(waiting)) === '1'
    })
    const isUndone = await lock(first).then(
      () => false,
      () => true,
    )
    await stranger.query('commit')
    expect((await inTime('the pulse', pulse)).map(({ status }) => status)).toEqual(['held', 'held'])
    // On a machine that stood still in between it may have been the stranger: then the pulse has shown nothing, and only had to wait.
    if (!isUndone) expect(server.log).toMatch(/deadlock detected[\s\S]*pulse/)
  }, 120_000)

  it('says what is wrong with a read-only server, within the deadline, and goes on afterwards', async () => {
    const server = await start()
    const locks = client(server, { storeTimeout: '8s' })
    const hold = await locks.mutex('door').acquire()
    const setReadOnly = async (value: string): Promise<void> => {
      await server.query(`alter system set default_transaction_read_only = ${value}`)
      await server.query('select pg_reload_conf()')
    }
    await setReadOnly('on')
    await eventually(
      'read-only',
      async () => (await server.query('show default_transaction_read_only')) === 'on',
    )
    const error = await rejectsWith('STORE_UNAVAILABLE', locks.mutex('other').acquire())
    expect(error.message).toMatch(/read-only/)
    await setReadOnly('off')
    await eventually(
      'writable',
      async () => (await server.query('show default_transaction_read_only')) === 'off',
    )
    expect(await locks.mutex('other').run(({ fence }) => fence)).toBeGreaterThan(hold.fence)
    expect(await hold.release()).toBe(true)
  })

  it('ends its connections to a server that has become read-only, as after a failover', async () => {
    const server = await start()
    const pool = openPgPool(server.url, 1)
    const connection = postgres(pool).connect({ id: 'client', space: 'space', push: () => {} })
    endings.push(
      () => pool.end(),
      () => connection.close(),
    )
    await connection.claim(claimOf('door', 'one'))
    const idOf = async (): Promise<unknown> => (await pool.query('select pg_backend_pid() as id')).rows[0].id
    const id = await idOf()
    await pool.query('set default_transaction_read_only = on')
    const claim = async (): Promise<unknown> => connection.claim(claimOf('door', 'two'))
    const error = await rejectsWith('STORE_UNAVAILABLE', claim())
    expect(error.message).toMatch(/read-only/)
    expect(await idOf()).not.toBe(id)
  })

  const noDisk = noTinyDisk()
  it.skipIf(noDisk !== null)(
    `says that the disk is full, within the deadline, keeps what it has, and goes on when there is room${noDisk ? ` (skipped: ${noDisk})` : ''}`,
    async () => {
      const server = await start()
      const disk = new TinyDisk(join(server.folder, 'tiny'), 4)
      // After the server has ended, and before its folder is removed.
      endings.push(
        () => disk.dispose(),
        () => server.kill('SIGINT'),
      )
      await server.own(disk.folder)
      await server.query(`create tablespace tiny location '${disk.folder}'`)
      await server.query(
        "create role cramped login superuser; alter role cramped set default_tablespace = 'tiny'",
      )
      const locks = new Holdfast(postgres(server.url.replace('postgres@', 'cramped@')), {
        storeTimeout: '4s',
      })
      endings.push(() => locks.close({ drain: 0 }).catch(() => {}))
      const first = await locks.mutex('first').acquire({ lease: '2m' })
      disk.fill()
      const holds: Hold[] = []
      const takeAll = async (): Promise<void> => {
        for (let index = 0; index < 10_000; index++)
          holds.push(await locks.mutex(`${index} ${'x'.repeat(500)}`).acquire({ lease: '2m' }))
      }
      const error = await rejectsWith('STORE_UNAVAILABLE', takeAll())
      expect(error.message).toMatch(/disk of the PostgreSQL server is full/)
      expect(await first.release()).toBe(true)
      expect((await Promise.all(holds.map((hold) => hold.release()))).every(Boolean)).toBe(true)
      disk.empty()
      const names = holds.map(({ resource }) => resource)
      const next = await Promise.all(names.map((name) => locks.mutex(name).run(({ fence }) => fence)))
      expect(next.every((fence, index) => fence > (holds[index]?.fence ?? Infinity))).toBe(true)
      expect(await locks.mutex('first').run(({ fence }) => fence)).toBeGreaterThan(first.fence)
    },
    120_000,
  )

  it.each(['pg', 'postgres'])(
    'keeps no process alive that has closed its client while the server is frozen: %s',
    async (driver) => {
      const server = await start()
      const child = fork(FROZEN, [`${server.url}?driver=${driver}`])
      endings.push(() => child.kill('SIGKILL'))
      expect(await once(child, 'message')).toContain('held')
      server.pause()
      endings.push(() => server.resume())
      child.send('close')
      expect((await once(child, 'message'))[0]).toEqual([])
      expect(await once(child, 'exit')).toEqual([0, null])
    },
  )

  const clock = new WallClock()
  const noShim = clock.obstacle
  it.skipIf(noShim !== null)(
    `freezes no lock when the server's clock moves by an hour either way${noShim ? ` (skipped: ${noShim})` : ''}`,
    async () => {
      const server = await start({ clock })
      endings.unshift(() => clock.dispose())
      const [dead, alive] = [client(server), client(server)]
      let newest = 0
      /** Somebody waits for the lease of one who is dead. */
      const waiter = async (id: string): Promise<Watched<Hold>> => {
        const raw = postgres(server.url).connect({ id, space: 'default', push: () => {} })
        const claimed = await raw.claim(claimOf('door', `${id}:1`, { leaseMs: 1500 }))
        expect(claimed).toMatchObject({ status: 'granted' })
        await raw.close()
        const waiting = new Watched(alive.mutex('door').acquire({ lease: '5s' }))
        await eventually('the waiter', async () => waiting.isSettled || (await waiters(dead)) === 1)
        return waiting
      }
      for (const hours of [-1, 1, 0]) {
        let waiting = await waiter(`raw ${hours}`)
        // On a machine that stood still the lease may be over before the clock is moved.
        for (let time = 1; waiting.isSettled; time++) {
          await (await waiting.promise).release()
          waiting = await waiter(`raw ${hours} ${time}`)
        }
        const movedAt = now()
        clock.set(hours * 3600)
        const hold = await inTime('the lease of the dead', waiting.promise, 30_000)
        if (hours <= 0) expect(now() - movedAt).toBeLessThan(20_000)
        expect(hold.fence).toBeGreaterThan(newest)
        newest = hold.fence
        await hold.release()
      }
    },
    120_000,
  )
})
