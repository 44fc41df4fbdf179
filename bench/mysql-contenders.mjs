// The contestants on MySQL. `where` is the server's URL. `pair(task)` is one acquire and release of
// the lock with that number.
import { Verrou } from '@verrou/core'
import { kyselyStore } from '@verrou/core/drivers/kysely'
import { Holdfast } from 'holdfast'
import { mysql } from 'holdfast/mysql'
import { Kysely, MysqlDialect } from 'kysely'
import * as mariadb from 'mariadb'
import mysql2, { createPool } from 'mysql2'

const CONNECTIONS = 10
const LEASE_MS = 30_000

export const mysqlContenders = {
  'holdfast mysql2': async (where) => {
    const pool = mysql2.createPool(settingsOf(where))
    return holdfast(pool, () => pool.promise().end())
  },
  'holdfast mariadb': async (where) => {
    const pool = mariadb.createPool(settingsOf(where))
    return holdfast(pool, () => pool.end())
  },
  verrou: async (where) => {
    const connection = new Kysely({ dialect: new MysqlDialect({ pool: createPool(settingsOf(where)) }) })
    const store = kyselyStore({ connection })
    const verrou = new Verrou({ default: 'sql', stores: { sql: { driver: store } } })
    return {
      pair: async (task) => (await hold(verrou, task))(),
      hold: (task) => hold(verrou, task),
      close: () => connection.destroy(),
    }
  },
}

async function hold(verrou, task) {
  const lock = verrou.createLock(`lock-${task}`, LEASE_MS)
  // A deadlock is passed on to the caller, who has to try again.
  while (!(await lock.acquire().catch(isDeadlock))) {}
  return () => lock.release()
}

function isDeadlock(error) {
  if (error.errno !== 1213) throw error
  return false
}

function settingsOf(where) {
  const { hostname: host, port, username: user, password, pathname } = new URL(where)
  return {
    host,
    port: Number(port),
    user,
    password,
    database: pathname.slice(1),
    connectionLimit: CONNECTIONS,
  }
}

function holdfast(pool, end) {
  const locks = new Holdfast(mysql(pool), { order: 'strict' })
  const mutexes = Array.from({ length: 64 }, (_, task) => locks.mutex(`lock-${task}`))
  return {
    pair: async (task) => {
      const hold = await mutexes[task].acquire()
      await hold.release()
    },
    close: async () => {
      await locks.close()
      await end()
    },
  }
}
