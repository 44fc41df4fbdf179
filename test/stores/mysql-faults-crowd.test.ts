import { createPool } from 'mysql2/promise'
import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { mysql } from '../../src/stores/mysql/index.js'
import { eventually, pass } from '../../src/testing/conformance/checks.js'
import type { Crowd } from '../faults/crowd.js'
import { crowdAt, judged, LEASE_MS, LIMIT_MS, ROUNDS, STALL_MS } from '../faults/mysql.js'
import { Seats } from '../faults/seats.js'
import { describeOn } from '../servers/availability.js'
import { ending } from '../servers/ending.js'
import { type MariadbServer, startMariadb } from '../servers/mariadb.js'

/** After a stall the clients' connections are cut by their drivers, and opened anew. */
const RECONNECT_MS = 5000

describeOn('mariadb', 'faults of a MySQL server, while many contend', () => {
  async function crowdOn(): Promise<{ server: MariadbServer; crowd: Crowd }> {
    const server = ending(await startMariadb())
    return { server, crowd: crowdAt(server.url) }
  }

  /** Ends some connection, whichever. */
  async function killOne(server: MariadbServer): Promise<void> {
    const one = 'select id from information_schema.processlist where db = "test" and id <> connection_id()'
    const id = await server.query(`${one} order by rand() limit 1`)
    // It may have ended by itself meanwhile.
    if (id !== '') await server.query(`kill ${id}`).catch(() => {})
  }

  it('kill -9 and a restart: nothing is lost', { timeout: LIMIT_MS }, async () => {
    const { server, crowd } = await crowdOn()
    const keeper = new Holdfast(mysql(server.url))
    const kept = await keeper.mutex('kept').acquire({ lease: '2m' })
    for (let round = 0; round < ROUNDS; round++) {
      await crowd.granted(30)
      await server.restart({ keepData: true })
      await crowd.recovered(RECONNECT_MS)
    }
    expect(kept.isValid).toBe(true)
    expect(await kept.release()).toBe(true)
    await keeper.close()
    await judged(crowd)
  })

  it('KILL of every connection, and of one after the other', { timeout: LIMIT_MS }, async () => {
    const { server, crowd } = await crowdOn()
    for (let round = 0; round < 2 * ROUNDS; round++) {
      await crowd.granted(30)
      await server.dropClients()
      await crowd.recovered(RECONNECT_MS)
      for (let count = 0; count < 20; count++) await killOne(server)
      await crowd.recovered(RECONNECT_MS)
    }
    await judged(crowd)
  })

  it('a stall longer than the lease: holders know by the end of their time', {
    timeout: LIMIT_MS + ROUNDS * STALL_MS,
  }, async () => {
    const { server, crowd } = await crowdOn()
    const keeper = new Holdfast(mysql(server.url))
    for (let round = 0; round < ROUNDS; round++) {
      const kept = await keeper.mutex('kept').acquire({ lease: LEASE_MS })
      await crowd.granted(30)
      server.pause()
      await eventually('the report of its end', () => kept.signal.aborted, 60_000)
      expect(kept.isValid).toBe(false)
      await pass(Math.max(0, STALL_MS - LEASE_MS))
      server.resume()
      await crowd.recovered(RECONNECT_MS)
    }
    await keeper.close()
    await judged(crowd)
  })

  it('deadlocks with a stranger, again and again: nobody notices', { timeout: LIMIT_MS }, async () => {
    const { server, crowd } = await crowdOn()
    const pool = createPool({ uri: server.url, connectionLimit: 1 })
    await crowd.granted(30)
    const stranger = await pool.getConnection()
    const deadlocks = async (): Promise<number> =>
      Number((await server.query("show global status like 'Innodb_deadlocks'")).split('\t')[1])
    // In the order in which ours do not lock: claims before lines.
    for (let count = 0; count < 200 && (await deadlocks()) < 5; count++) {
      await stranger.query('begin')
      for (const table of ['claim', 'line'])
        await stranger.query(`select * from holdfast_${table} for update`).catch(() => {})
      await stranger.query('rollback')
    }
    expect(await deadlocks()).toBeGreaterThan(0)
    stranger.release()
    await crowd.recovered(RECONNECT_MS)
    await pool.end()
    await judged(crowd)
  })

  it('semaphores and read-write locks while connections are killed at random', {
    timeout: LIMIT_MS,
  }, async () => {
    const server = ending(await startMariadb())
    const seats = new Seats(
      (['mysql2', 'mariadb'] as const).flatMap((driver) =>
        [1, 2].map(() => new Holdfast(mysql(server.url, { driver, connections: 3 }))),
      ),
    )
    for (let round = 0; round < 10 * ROUNDS; round++) {
      await seats.granted(20)
      await killOne(server)
    }
    await seats.served()
    await seats.judged()
  })
})
