import { expect, it } from 'vitest'
import type { ClaimRequest, Connection } from '../../src/contract/store.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { borrowPostgres } from '../servers/postgres.js'
import { openPgPool } from './postgres/pools.js'

const CAPACITY = 4
const NAMES = ['one', 'two', 'three']

/** Lines whose row does not say what their claims come to. */
const WRONG = `
  select l.resource, l.used, l.capacity, l.soonest, l.next, l.sole, h.*, w.id as first
    from rows.line l
    left join lateral (select sum(c.permits) as sum, max(c.capacity) as most, min(c.expires) as expiry, array_agg(c.id) as ids
      from rows.claim c where c.line = l.id and c.fence is not null) h on true
    left join lateral (select c.id from rows.claim c where c.line = l.id and c.fence is null order by c.place limit 1) w on true
    where case when l.sole is not null then l.used = 0 or h.sum is not null or w.id is not null or l.next is not null
      else l.used <> coalesce(h.sum, 0) or l.next is distinct from w.id
        or (l.used > 0 and (l.soonest is distinct from h.expiry or l.capacity is distinct from h.most)) end`

/** How often claims were looked for by an index, and how many entries were read for that. */
const COUNTS = `select sum(idx_scan)::int as scans, sum(idx_tup_read)::int as read
  from pg_stat_user_indexes where schemaname = 'long' and relname = 'claim'`

describeOn(
  'postgres',
  'the rows of the PostgreSQL store',
  () => {
    it('of lines say what their claims come to, whatever was done at once', {
      timeout: 120_000,
    }, async () => {
      const server = await borrowPostgres()
      const pool = openPgPool(server.url, 10)
      const connections = Array.from({ length: 4 }, (_each, index) =>
        postgres(pool, { schema: 'rows', retention: `${index + 1}m` }).connect({
          id: `client ${index}`,
          space: 'space',
          push: () => {},
        }),
      )
      await connections[0]?.pulse([])
      const claims = connections.map((): ClaimRequest[] => [])
      for (let round = 0; round < 100; round++) {
        await Promise.all(
          connections.map((connection, index) =>
            someSteps(connection, claims[index] ?? [], `${round}:${index}`),
          ),
        )
        expect((await pool.query(WRONG)).rows).toEqual([])
      }
      await pool.query('drop schema rows cascade')
      await Promise.all(connections.map((connection) => connection.close()))
      await pool.end()
      await server.stop()
    })

    it('of a long line are not read for the pulse of one, also by plans that were made when it was short', {
      timeout: 120_000,
    }, async () => {
      const server = await borrowPostgres()
      const pool = openPgPool(server.url, 2)
      const connection = postgres(pool, { schema: 'long' }).connect({ id: 'c', space: 's', push: () => {} })
      const hold = claimOf('door', 'c:0', { leaseMs: 60_000 })
      await connection.claim(hold)
      for (let round = 0; round < 20; round++) await connection.pulse([hold])
      const waiters = Array.from({ length: 2000 }, (_each, index) => claimOf('door', `c:${index + 1}`))
      await Promise.all(waiters.map((waiter) => connection.claim(waiter)))
      const counts = async (): Promise<{ scans: number; read: number }> =>
        (await pool.query(COUNTS)).rows[0] as { scans: number; read: number }
      const before = await counts()
      let after = before
      // Sessions tell what they have counted once in a while.
      for (let round = 0; round < 50 || after.scans - before.scans < 50; round++) {
        await connection.pulse([hold])
        after = await counts()
      }
      expect((after.read - before.read) / (after.scans - before.scans)).toBeLessThan(20)
      await pool.query('drop schema long cascade')
      await connection.close()
      await pool.end()
      await server.stop()
    })
  },
  { own: false },
)

/** Everything that a client may do, at random. What is refused is as well. */
async function someSteps(connection: Connection, claims: ClaimRequest[], prefix: string): Promise<void> {
  for (let step = 0; step < 5; step++) {
    const name = pick(NAMES) ?? 'one'
    const one = pick(claims.slice(-4)) ?? claimOf(name, `${prefix}:none`)
    const actions = [
      () => enter(connection, claims, name, `${prefix}:${step}`),
      () => enter(connection, claims, name, `${prefix}:${step}`),
      () => connection.release(one.resource, one.id),
      () => connection.release(one.resource, one.id),
      () => connection.pulse([{ ...one, permits: 1 + Math.floor(Math.random() * CAPACITY) }]),
      () => Promise.all([connection.claim(one), connection.release(one.resource, one.id)]),
      () => (Math.random() < 0.2 ? connection.evict(name, null) : null),
      () =>
        Math.random() < 0.1 ? connection.resize(name, CAPACITY, 3 + Math.floor(Math.random() * 3)) : null,
    ]
    await pick(actions)?.()
  }
}

async function enter(
  connection: Connection,
  claims: ClaimRequest[],
  name: string,
  id: string,
): Promise<void> {
  const claim = claimOf(name, id, {
    permits: 1 + Math.floor(Math.random() * CAPACITY),
    capacity: CAPACITY,
    leaseMs: pick([1, 20, 60_000]) ?? 1,
    presenceMs: pick([1, 20, 60_000]) ?? 1,
    mode:
      pick(['queue', 'queue', 'queue', 'queue', 'queue', 'queue', 'try', 'try', 'try', 'steal'] as const) ??
      'queue',
  })
  claims.push(claim)
  await connection.claim(claim)
}

function pick<T>(list: readonly T[]): T | undefined {
  return list[Math.floor(Math.random() * list.length)]
}
