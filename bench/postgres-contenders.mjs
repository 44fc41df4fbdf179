// The contestants on PostgreSQL. `where` is the server's URL. `pair(task)` is one acquire and
// release of the lock with that number.
import { Verrou } from '@verrou/core'
import { kyselyStore } from '@verrou/core/drivers/kysely'
import advisoryLock from 'advisory-lock'
import { Holdfast } from 'holdfast'
import { postgres } from 'holdfast/postgres'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgresJs from 'postgres'

const CONNECTIONS = 10
const LEASE_MS = 30_000

export const postgresContenders = {
  'holdfast pg': (where) => holdfastOnPg(where, 'strict'),
  'holdfast postgres.js': (where) => holdfastOnPostgresJs(where, 'strict'),
  'holdfast pg, cohort': (where) => holdfastOnPg(where, 'cohort'),
  'holdfast postgres.js, cohort': (where) => holdfastOnPostgresJs(where, 'cohort'),
  // Has no line: who finds a lock taken tries again after a quarter of a second.
  'verrou (pg)': async (where) => {
    const pool = new pg.Pool({ connectionString: where, max: CONNECTIONS })
    const connection = new Kysely({ dialect: new PostgresDialect({ pool }) })
    const verrou = new Verrou({
      default: 'sql',
      stores: { sql: { driver: kyselyStore({ connection }) } },
    })
    return contestant(
      async (task) => {
        const lock = verrou.createLock(`lock-${task}`, LEASE_MS)
        if (!(await lock.acquire())) throw new Error('verrou gave up')
        return () => lock.release()
      },
      () => connection.destroy(),
    )
  },
  // A connection for each lock that is waited for or held; the server keeps the line.
  'advisory-lock': async (where) => {
    const mutexOf = advisoryLock.default(where)
    return contestant(
      (task) => mutexOf(`lock-${task}`).lock(),
      async () => {},
    )
  },
}

function contestant(hold, close) {
  return { hold, pair: async (task) => (await hold(task))(), close }
}

function holdfastOnPg(where, order) {
  const pool = new pg.Pool({ connectionString: where, max: CONNECTIONS })
  return holdfast(pool, order, () => pool.end())
}

function holdfastOnPostgresJs(where, order) {
  const sql = postgresJs(where, { max: CONNECTIONS, onnotice: () => {} })
  return holdfast(sql, order, () => sql.end())
}

function holdfast(pool, order, end) {
  const locks = new Holdfast(postgres(pool), { order })
  const mutexes = Array.from({ length: 64 }, (_, task) => locks.mutex(`lock-${task}`))
  return contestant(
    async (task) => {
      const hold = await mutexes[task].acquire()
      return () => hold.release()
    },
    async () => {
      await locks.close()
      await end()
    },
  )
}
