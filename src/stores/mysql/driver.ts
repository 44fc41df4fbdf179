import { invalid } from '../../base/errors.js'
import { quietly } from '../../base/quietly.js'

/** A pool of yours: of `mysql2/promise`, of `mysql2`, or of `mariadb`. */
export interface MysqlPool {
  /** Lends a connection. */
  getConnection(...args: never[]): unknown
  /** Ends all connections. */
  end(...args: never[]): unknown
}

/** The part of a lent connection that this store uses; the same in both packages. */
interface PooledConnection {
  query(sql: string): Promise<unknown>
  release(): unknown
  destroy(): unknown
}

/** The connection inside a promise connection of mysql2. */
interface CallbackConnection {
  query(sql: string, done: (error: unknown, result: unknown) => void): unknown
}

interface PromisePool {
  getConnection(): Promise<PooledConnection>
  end(): Promise<unknown>
}

/** Where each package tells the size of its pool. */
interface Sized {
  pool?: { config?: { connectionLimit?: unknown } }
  totalConnections?: () => number
}

/** The most connections of both packages by default. */
const USUAL_CONNECTIONS = 10

/** The result of an UPDATE. */
export interface Changed {
  readonly rows: number
  /** Its LAST_INSERT_ID. */
  readonly id: number
}

/** One connection of the pool, lent for one statement. */
export interface Lent {
  /** The package's own connection. */
  readonly own: unknown
  /** The first column of the rows of the first result, as text. */
  query(sql: string): Promise<string[]>
  /** One UPDATE. */
  change(sql: string): Promise<Changed>
  release(): void
  /** Ends it, whatever it is doing; it does not return to the pool. */
  destroy(): void
}

/** A pool of either package. */
export class MysqlDriver {
  readonly #pool: PromisePool
  readonly #isOurs: boolean
  readonly #isMysql2: boolean
  /** How many claims and releases may be under way at once; a connection is left for pulses. */
  readonly atOnce: number

  constructor(pool: unknown, isOurs: boolean, connections?: number) {
    this.#pool = asPromisePool(pool)
    this.#isOurs = isOurs
    this.#isMysql2 = !('totalConnections' in this.#pool)
    this.atOnce = Math.max(1, (connections ?? this.#limit ?? USUAL_CONNECTIONS) - 1)
  }

  /** How many connections it may have; 0: the package does not tell. */
  size(): number {
    if (this.#limit !== undefined) return this.#limit
    const { totalConnections } = this.#pool as PromisePool & Sized
    // mariadb tells how many it has.
    return typeof totalConnections === 'function' ? totalConnections.call(this.#pool) : 0
  }

  /** The most connections, where the package tells. */
  get #limit(): number | undefined {
    const limit = (this.#pool as PromisePool & Sized).pool?.config?.connectionLimit
    if (typeof limit !== 'number') return undefined
    return limit === 0 ? Infinity : limit
  }

  async lend(): Promise<Lent> {
    const connection = await this.#pool.getConnection()
    const ask = this.#isMysql2 ? askerOf(connection) : (sql: string) => connection.query(sql)
    return {
      own: connection,
      query: async (sql) => rowsOf(await ask(sql)).map(firstColumn),
      change: async (sql) => {
        const { affectedRows, insertId } = (await ask(sql)) as { affectedRows: number; insertId: unknown }
        return { rows: affectedRows, id: Number(insertId) }
      },
      // mariadb's own clean-up may fail later; the connection then leaves the pool.
      release: () => quietly(() => connection.release()),
      destroy: () => quietly(() => connection.destroy()),
    }
  }

  /** Closes only what Holdfast opened. */
  async close(): Promise<void> {
    if (this.#isOurs) await this.#pool.end()
  }
}

/** Avoids the promises of mysql2: it captures a stack for each, a twentieth of a call. */
function askerOf(connection: PooledConnection): (sql: string) => Promise<unknown> {
  const { connection: inner } = connection as { connection?: CallbackConnection }
  if (typeof inner?.query !== 'function')
    return async (sql) => ((await connection.query(sql)) as unknown[])[0]
  return (sql) =>
    new Promise((resolve, reject) => {
      inner.query(sql, (error, result) => (error ? reject(error) : resolve(result)))
    })
}

function isPool(client: unknown): client is MysqlPool {
  const { getConnection, end } = (client ?? {}) as Partial<MysqlPool>
  return typeof getConnection === 'function' && typeof end === 'function'
}

/** A callback pool of mysql2 gives its promise pool. */
function asPromisePool(pool: unknown): PromisePool {
  if (!isPool(pool))
    throw invalid(
      'mysql() takes a URL, such as mysql://localhost/app, or a pool of mysql2 or mariadb (createPool)',
    )
  const { promise } = pool as { promise?: () => unknown }
  return (typeof promise === 'function' ? promise.call(pool) : pool) as PromisePool
}

/** The rows of a SELECT, or of the first SELECT in a CALL. Other statements have counts instead. */
function rowsOf(result: unknown): readonly unknown[] {
  if (!Array.isArray(result)) return []
  // The result of a CALL ends with counts of its own.
  return isCounts(result.at(-1)) ? result[0] : result
}

function isCounts(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'affectedRows' in value
}

/** Rows may be objects or, by an option of the pool, arrays. */
function firstColumn(row: unknown): string {
  return String(Object.values(row as object)[0])
}
