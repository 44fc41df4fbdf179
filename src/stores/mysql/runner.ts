import { type Env, systemEnv } from '../../base/env.js'
import type { Changed, Lent, MysqlDriver } from './driver.js'
import {
  closed,
  explain,
  isCollision,
  isSchemaMissing,
  isSpoiled,
  notCommitting,
  outOfReach,
} from './failures.js'
import { ensureSchema, makeSchema } from './install.js'
import type { MysqlNames } from './sql/names.js'

/** How often a call is repeated that the server has rolled back in favour of another one. */
const MOST_COLLISIONS = 5
/** A connection that does not answer for this long is taken for dead. */
const SILENT_AFTER_MS = 30_000

export interface MysqlRunnerOptions {
  openDriver(): Promise<MysqlDriver>
  readonly names: MysqlNames
  /** false: the user has created the schema. */
  readonly createSchema: boolean
  readonly env?: Env
}

/** Runs statements; opens the pool at the first call, and creates a missing schema. */
export class MysqlRunner {
  readonly names: MysqlNames
  readonly #options: MysqlRunnerOptions
  readonly #env: Env
  #atOnce = 1
  #isInUse = false
  #opening: Promise<MysqlDriver> | undefined

  constructor(options: MysqlRunnerOptions) {
    this.names = options.names
    this.#env = options.env ?? systemEnv
    this.#options = options
  }

  /** How many claims and releases may be under way at once. */
  get atOnce(): number {
    return this.#atOnce
  }

  /** Allows calls until `close`: a later call must not open anything, since it would stay open. */
  use(): void {
    this.#isInUse = true
  }

  /** Calls a routine; resolves with the rows of its answer. The values are SQL. */
  call(routine: string, values: readonly string[]): Promise<string[]> {
    return this.query(`CALL ${this.names.routine(routine)}(${values.join(',')})`)
  }

  query(sql: string): Promise<string[]> {
    return this.#try((connection) => connection.query(sql))
  }

  /** One UPDATE, in a transaction of its own. */
  change(sql: string): Promise<Changed> {
    return this.#try((connection) => connection.change(sql))
  }

  async #try<T>(work: (connection: Lent) => Promise<T>): Promise<T> {
    let isRepaired = false
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#lend(work)
      } catch (error) {
        if (isSchemaMissing(error) && !isRepaired && this.#options.createSchema) {
          isRepaired = true
          // It was dropped, or was not in a backup.
          await this.lend((connection) => makeSchema(connection, this.names))
        } else if (!isCollision(error) || attempt > MOST_COLLISIONS) throw explain(error)
      }
    }
  }

  /** Lends a connection of the pool to work of several statements. */
  async lend<T>(work: (connection: Lent) => Promise<T>): Promise<T> {
    try {
      return await this.#lend(work)
    } catch (error) {
      throw explain(error)
    }
  }

  async close(): Promise<void> {
    this.#isInUse = false
    const opening = this.#opening
    this.#opening = undefined
    const driver = await opening?.catch(() => undefined)
    await driver?.close()
  }

  async #lend<T>(work: (connection: Lent) => Promise<T>): Promise<T> {
    const driver = await this.#open()
    const connection = await driver.lend()
    return this.#within(connection, work(connection))
  }

  #within<T>(connection: Lent, outcome: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      let end = connection.release
      const giveUp = (): void => {
        end = () => {}
        connection.destroy()
        reject(outOfReach(`no answer within ${SILENT_AFTER_MS / 1000} s`))
      }
      const cancel = this.#env.timer(SILENT_AFTER_MS, giveUp, { keepAlive: false })
      const finish = (): void => {
        cancel()
        end()
      }
      const onFailure = (error: unknown): never => {
        if (isSpoiled(error)) end = connection.destroy
        throw error
      }
      outcome.catch(onFailure).finally(finish).then(resolve, reject)
    })
  }

  /** After a failed attempt, the next call tries again. */
  #open(): Promise<MysqlDriver> {
    if (!this.#isInUse) return Promise.reject(closed())
    if (this.#opening) return this.#opening
    const opening = this.#openOnce()
    this.#opening = opening
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined
    })
    return opening
  }

  async #openOnce(): Promise<MysqlDriver> {
    const { openDriver, createSchema } = this.#options
    const driver = await openDriver()
    try {
      const connection = await driver.lend()
      await this.#within(connection, prepare(connection, this.names, createSchema))
      this.#atOnce = driver.atOnce
      return driver
    } catch (error) {
      await driver.close().catch(() => {})
      throw error
    }
  }
}

async function prepare(connection: Lent, names: MysqlNames, createSchema: boolean): Promise<void> {
  const [commits] = await connection.query('SELECT @@autocommit')
  if (commits !== '1') throw notCommitting()
  if (createSchema) await ensureSchema(connection, names)
}
