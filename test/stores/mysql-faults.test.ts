import { createPool } from 'mysql2/promise'
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import { type Duration, Holdfast } from '../../src/index.js'
import { mysql } from '../../src/stores/mysql/index.js'
import {
  assertIncreasing,
  eventually,
  inTime,
  pass,
  rejectsWith,
} from '../../src/testing/conformance/checks.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { type MariadbServer, startMariadb } from '../servers/mariadb.js'
import { WallClock } from '../servers/wall-clock.js'

/** Outlasts the start of a server on a busy machine. */
const LEASE_MS = 20_000
/** Where the hold is lost, its next renewal tells. */
const BRIEF_LEASE_MS = 6000

interface Fault {
  /** Whether the lines are there afterwards. */
  keepsLines: boolean
  strike(server: MariadbServer): Promise<unknown>
}

const FAULTS: Record<string, Fault> = {
  'KILL of every connection': { keepsLines: true, strike: (server) => server.dropClients() },
  'kill -9 and a restart': { keepsLines: true, strike: (server) => server.restart({ keepData: true }) },
  'read_only for a moment': {
    keepsLines: true,
    strike: async (server) => {
      await server.query('set global read_only = 1')
      setTimeout(() => void server.query('set global read_only = 0'), 500)
    },
  },
  'the loss of every table': {
    keepsLines: false,
    strike: (server) => server.query('drop database test; create database test'),
  },
}

describeOn('mariadb', 'the MySQL store goes on by itself', () => {
  let server: MariadbServer
  const clients: Holdfast[] = []
  beforeAll(async () => {
    server = await startMariadb()
    // read_only does not bind those with all rights.
    await server.query(
      'create user app@localhost; grant all on test.* to app@localhost; grant process on *.* to app@localhost',
    )
  })
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close({ drain: 0 })))
  })
  afterAll(() => server.stop())

  const client = (driver: 'mysql2' | 'mariadb'): Holdfast => {
    const made = new Holdfast(mysql(server.url.replace('root@', 'app@'), { driver }), {
      order: 'strict',
      storeTimeout: '30s',
    })
    clients.push(made)
    return made
  }

  for (const driver of ['mysql2', 'mariadb'] as const)
    it.each(Object.entries(FAULTS))(
      `through ${driver} after %s`,
      async (title, { keepsLines, strike }) => {
        const name = `${driver} ${title}`
        const lease = keepsLines ? LEASE_MS : BRIEF_LEASE_MS
        const holder = await client(driver).mutex(name).acquire({ lease })
        const next = client(driver).mutex(name).acquire({ lease })
        await queued(client(driver), name, 1)
        await strike(server)
        if (keepsLines) {
          await holder.extend(lease)
          expect(await holder.release()).toBe(true)
        } else {
          await eventually('the loss', () => holder.signal.aborted)
          expect(await holder.release()).toBe(false)
        }
        const hold = await inTime('the next one', next)
        expect(hold.isValid).toBe(true)
        expect(hold.fence).toBeGreaterThan(holder.fence)
        expect(await hold.release()).toBe(true)
      },
      60_000,
    )

  it('after a deadlock with a stranger, without a word', async () => {
    const locks = client('mysql2')
    const holder = await locks.mutex('first').acquire({ lease: '1m' })
    const pool = createPool({ uri: server.url, connectionLimit: 1 })
    onTestFinished(() => pool.end())
    const stranger = await pool.getConnection()
    const deadlocks = async (): Promise<number> =>
      Number((await server.query("show global status like 'Innodb_deadlocks'")).split('\t')[1])
    const before = await deadlocks()
    // The server ends the lighter of the two, and that shall be ours.
    await stranger.query('create table if not exists weight (a int) engine = innodb')
    await stranger.query('begin')
    await stranger.query('insert into weight select seq from seq_1_to_1000')
    await stranger.query('select * from holdfast_claim for update')
    const claim = locks.mutex('first').acquire({ lease: '1m' })
    const waiting = "select count(*) from information_schema.innodb_trx where trx_state = 'LOCK WAIT'"
    await eventually('our claim waits for the stranger', async () => {
      // InnoDB brings this table up to date only where nobody has read it for 100 ms.
      await pass(200)
      return (await server.query(waiting)) === '1'
    })
    await stranger.query('select * from holdfast_line for update')
    await stranger.query('rollback')
    stranger.release()
    expect(await deadlocks()).toBe(before + 1)
    await queued(locks, 'first', 1)
    expect(await holder.release()).toBe(true)
    const hold = await inTime('the next one', claim)
    expect(hold.fence).toBeGreaterThan(holder.fence)
    await hold.release()
  })

  it('after a stall of 10 seconds: holds, places and fences are kept, and whoever waits no longer hears why', async () => {
    const still = await startMariadb()
    const open = (driver: 'mysql2' | 'mariadb', storeTimeout: Duration): Holdfast => {
      const locks = new Holdfast(mysql(still.url, { driver }), { storeTimeout, order: 'strict' })
      clients.push(locks)
      return locks
    }
    onTestFinished(() => still.stop())
    const [one, two, hasty] = [open('mysql2', '1m'), open('mariadb', '1m'), open('mysql2', '3s')]
    const holder = await one.mutex('door').acquire({ lease: '2m' })
    const waiting = [one, two].map((locks) => locks.mutex('door').run(({ fence }) => fence, { lease: '2m' }))
    await hasty.mutex('other').run(() => {})
    await queued(one, 'door', 2)
    still.pause()
    const stalledAt = systemEnv.now()
    // What is on its way when the server is stopped may still be answered.
    const forEver = async (): Promise<void> => {
      for (;;) await hasty.mutex('other').run(() => {})
    }
    await rejectsWith('STORE_UNAVAILABLE', forEver())
    expect(systemEnv.now() - stalledAt).toBeLessThan(10_000)
    await pass(10_000 - (systemEnv.now() - stalledAt))
    still.resume()
    expect(await inTime('the release', holder.release(), 60_000)).toBe(true)
    const fences = await inTime('the others', Promise.all(waiting), 60_000)
    for (const fence of fences) expect(fence).toBeGreaterThan(holder.fence)
    expect(new Set(fences).size).toBe(2)
    expect(await hasty.mutex('other').run(({ fence }) => fence)).toBeGreaterThan(holder.fence)
  }, 120_000)

  it('says within the deadline that the server is read-only, and goes on afterwards', async () => {
    const locks = new Holdfast(mysql(server.url.replace('root@', 'app@')), { storeTimeout: '4s' })
    clients.push(locks)
    const hold = await locks.mutex('read-only').acquire({ lease: '1m' })
    await server.query('set global read_only = 1')
    try {
      const error = await rejectsWith('STORE_UNAVAILABLE', locks.mutex('another').acquire())
      expect(error.message).toMatch(/read-only; connect to the primary/)
    } finally {
      await server.query('set global read_only = 0')
    }
    expect(hold.isValid).toBe(true)
    expect(await hold.release()).toBe(true)
    expect(await locks.mutex('read-only').run(({ fence }) => fence)).toBeGreaterThan(hold.fence)
  })

  it('says within the deadline that there is no room left, and goes on when there is', async () => {
    const room = (most: string): string => `--innodb-data-file-path=ibdata1:12M:autoextend:max:${most}`
    const args = ['--innodb-file-per-table=0', room('24M')]
    const small = await startMariadb({ args })
    const locks = new Holdfast(mysql(small.url), { storeTimeout: '4s' })
    onTestFinished(async () => {
      await locks.close()
      await small.stop()
    })
    const hold = await locks.mutex('door').acquire({ lease: '2m' })
    await small.query('create table filler (a longblob) engine = innodb')
    const isRoom = (): Promise<boolean> =>
      small.query("insert into filler values (repeat('x', 1000000))").then(
        () => true,
        () => false,
      )
    while (await isRoom()) {}
    const fillUp = async (): Promise<void> => {
      // A long name takes room of its own.
      for (let number = 0; number < 200; number++)
        await locks.mutex('long '.repeat(1500) + number).run(() => {})
    }
    const error = await rejectsWith('STORE_UNAVAILABLE', fillUp())
    expect(error.message).toMatch(/full; free some space/)
    // Somebody gives the server a larger disk.
    args[1] = room('100M')
    await small.restart({ keepData: true })
    expect(await hold.release()).toBe(true)
    expect(await locks.mutex('door').run(({ fence }) => fence)).toBeGreaterThan(hold.fence)
    await locks.mutex('long '.repeat(1500)).run(() => {})
  }, 120_000)

  it('when its clock is moved by an hour: no lock freezes, and no fence falls', async ({ skip }) => {
    const clock = new WallClock()
    onTestFinished(() => clock.dispose())
    if (clock.obstacle) skip(clock.obstacle)
    const moved = await startMariadb({ clock })
    const locks = new Holdfast(mysql(moved.url))
    const dead = mysql(moved.url).connect({ id: 'dead', space: 'default', push: () => {} })
    onTestFinished(async () => {
      await locks.close()
      await dead.close()
      await moved.stop()
    })
    const fences: number[] = []
    for (const offset of [0, 3600, 0, -3600, 0]) {
      const reply = await dead.claim(claimOf('door', `claim ${fences.length}`, { leaseMs: 1000 }))
      if (reply.status !== 'granted') expect.fail(`the lock is ${reply.status}`)
      clock.set(offset)
      const aheadSeconds = Number(await moved.query('select unix_timestamp()')) - systemEnv.wallMs() / 1000
      expect(Math.abs(aheadSeconds - offset)).toBeLessThan(60)
      // It lapses after its lease, not after an hour.
      const next = await inTime('the end of the lease', locks.mutex('door').acquire(), 30_000)
      fences.push(reply.fence, next.fence)
      await next.release()
    }
    assertIncreasing(fences)
  }, 120_000)

  it('serves a thousand waiters with five connections, in order, and the application as well', async () => {
    // A user of its own: whoever counts the connections may still be there from the last time.
    await server.query('create user many@localhost; grant all on test.* to many@localhost')
    const pool = createPool({ uri: server.url.replace('root@', 'many@'), connectionLimit: 5 })
    const locks = new Holdfast(mysql(pool), { order: 'strict' })
    onTestFinished(async () => {
      await locks.close()
      await pool.end()
    })
    const holder = await locks.mutex('crowd').acquire({ lease: '1m' })
    const order: number[] = []
    const waiters = Array.from({ length: 1000 }, (_, number) =>
      locks.mutex('crowd').run(() => void order.push(number), { lease: '1m' }),
    )
    await queued(locks, 'crowd', 1000)
    await holder.release()
    let most = 0
    let isOver = false
    const watch = (async () => {
      while (!isOver) {
        const [rows] = await pool.query('select 1 as one')
        expect(rows).toEqual([{ one: 1 }])
        const count = 'select count(*) from information_schema.processlist where user = "many"'
        most = Math.max(most, Number(await server.query(count)))
      }
    })()
    await Promise.all(waiters)
    isOver = true
    await watch
    expect(order).toEqual(Array.from({ length: 1000 }, (_, number) => number))
    expect(most).toBeGreaterThan(0)
    expect(most).toBeLessThanOrEqual(5)
  }, 120_000)

  async function queued(locks: Holdfast, name: string, count: number): Promise<void> {
    await eventually(
      `${count} waiters for ${name}`,
      async () => {
        for await (const resource of locks.inspect({ prefix: name })) return resource.waiters.length === count
        return false
      },
      60_000,
    )
  }
})
