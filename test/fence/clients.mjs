/** The databases that the tests and their workers write to, each through a driver of the user's choice. */
import { mysqlGuard, postgresGuard, redisGuard, sqliteGuard } from 'holdfast/fence'

/**
 * @typedef {object} SqlDatabase
 * @property {any} client what the driver gives
 * @property {any} guard
 * @property {(sql: string) => Promise<any[]>} ask runs a statement without values and gives its rows
 * @property {() => Promise<void>} close
 */

/**
 * Opens a database by the driver's name.
 * @param {string} driver
 * @param {string} url or the path of a file
 * @returns {Promise<SqlDatabase>}
 */
export async function openSql(driver, url) {
  return OPENERS[driver](url)
}

/** @type {Record<string, (url: string) => Promise<SqlDatabase>>} */
const OPENERS = {
  async sqlite(path) {
    const Database = await sqliteClass()
    const client = new Database(path, { timeout: 10_000 })
    return {
      client,
      guard: sqliteGuard(client),
      ask: async (sql) => {
        if (/^select/i.test(sql)) return client.prepare(sql).all()
        client.exec(sql)
        return []
      },
      // libsql keeps a closed database, and its transaction, until its statements are garbage.
      close: async () => {
        if (client.inTransaction ?? client.isTransaction) client.exec('ROLLBACK')
        client.close()
      },
    }
  },
  async pg(url) {
    const { default: pg } = await load('pg')
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    return {
      client,
      guard: postgresGuard(client),
      ask: async (sql) => (await client.query(sql)).rows,
      close: () => client.end(),
    }
  },
  async postgres(url) {
    const { default: postgres } = await load('postgres')
    const client = postgres(url, { max: 1, onnotice: () => {} })
    return {
      client,
      guard: postgresGuard(client),
      ask: async (sql) => [...(await client.unsafe(sql))],
      close: () => client.end(),
    }
  },
  async mysql2(url) {
    const { createConnection } = await load('mysql2/promise')
    const client = await createConnection(url)
    return {
      client,
      guard: mysqlGuard(client),
      ask: async (sql) => [(await client.query(sql))[0]].flat(),
      close: () => client.end(),
    }
  },
  async mariadb(url) {
    const { createConnection } = await load('mariadb')
    const client = await createConnection(url.replace(/^mysql:/, 'mariadb:'))
    return {
      client,
      guard: mysqlGuard(client),
      ask: async (sql) => [await client.query(sql)].flat(),
      close: () => client.end(),
    }
  },
}

/**
 * @param {string} driver
 * @param {string} url
 * @returns {Promise<{ client: any, guard: import('holdfast/fence').RedisGuard, get(key: string): Promise<string | null>, close(): unknown }>}
 */
export async function openRedis(driver, url) {
  const client = await redisClient(driver, url)
  return {
    client,
    guard: redisGuard(client),
    get: (key) => client.get(key),
    close: () => (driver === 'redis' ? client.destroy() : client.disconnect()),
  }
}

/** @param {string} driver @param {string} url @returns {Promise<any>} */
async function redisClient(driver, url) {
  const module = await load(driver)
  if (driver === 'redis') return module.createClient({ url }).connect()
  return new module.default(url)
}

/** @returns {Promise<any>} */
async function sqliteClass() {
  try {
    return (await load('node:sqlite')).DatabaseSync
  } catch {
    return (await load('libsql')).default
  }
}

/**
 * By a name that is no literal: these packages need not be there.
 * @param {string} name
 * @returns {Promise<any>}
 */
export function load(name) {
  return import(name)
}
