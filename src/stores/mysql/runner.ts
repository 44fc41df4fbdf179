import { systemEnv } from '../../base/env.js'
import { FewAtOnce } from '../../base/few-at-once.js'
import type { Changed, Driver, Lent } from './driver.js'
import { closed, explain, isCollision, isSchemaMissing, notCommitting, outOfReach } from './failures.js'
import { ensureSchema, makeSchema } from './install.js'
import type { Names } from './sql/names.js'

/** How often a call is made again that the server has undone for another's sake. */
const MOST_COLLISIONS = 5
/** A connection that has not answered for so long is taken for dead: the network may have dropped it without a word. */
const SILENCE_MS = 30_000
/** Of claims and releases: after that long those behind it take another connection. */
const TURN_PATIENCE_MS = 5000

export interface RunnerOptions {
  openDriver(): Promise<Driver>
  readonly names: Names
  /** false: the schema is made by somebody else. */
  readonly createSchema: boolean
}

/** Runs statements on a pool that is opened at the first call, whose schema is made where it is missing. */
export class Runner {
  readonly names: Names
  readonly #options: RunnerOptions
  /** In the line of the pool itself claims and releases would stand before the pulses, and fail where it has a time-out. */
  readonly turns = new FewAtOnce({ env: systemEnv, most: () => this.#atOnce, patienceMs: TURN_PATIENCE_MS })
  #atOnce = 1
  #isWanted = false
  #opening: Promise<Driver> | undefined

  constructor(options: RunnerOptions) {
    this.names = options.names
    this.#options = options
  }

  /** Somebody uses it from now on, until it is closed: a call that comes later must not open anything that nobody would close. */
  use(): void {
    this.#isWanted = true
  }

  /** Calls a routine; resolves with the rows of its answer. `values` are SQL. */
  call(routine: string, values: readonly string[]): Promise<string[]> {
    return this.query(`CALL ${this.names.routine(routine)}(${values.join(',')})`)
  }

  query(sql: string): Promise<string[]> {
    return this.#try((connection) => connection.query(sql))
  }

  /** One UPDATE, which commits by itself. */
  change(sql: string): Promise<Changed> {
    return this.#try((connection) => connection.change(sql))
  }

  async #try<T>(work: (connection: Lent) => Promise<T>): Promise<T> {
    let isMended = false
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#lend(work)
      } catch (error) {
        if (isSchemaMissing(error) && !isMended && this.#options.createSchema) {
          isMended = true
          // Dropped, or not in a backup.
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
    this.#isWanted = false
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
        reject(outOfReach(`no answer within ${SILENCE_MS / 1000} s`))
      }
      const cancel = systemEnv.timer(SILENCE_MS, giveUp, { keepAlive: false })
      const finish = (): void => {
        cancel()
        end()
      }
      outcome.finally(finish).then(resolve, reject)
    })
  }

  /** A failed attempt is forgotten: the next call tries anew. */
  #open(): Promise<Driver> {
    if (!this.#isWanted) return Promise.reject(closed())
    if (this.#opening) return this.#opening
    const opening = this.#openOnce()
    this.#opening = opening
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined
    })
    return opening
  }

  async #openOnce(): Promise<Driver> {
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

async function prepare(connection: Lent, names: Names, createSchema: boolean): Promise<void> {
  const [commits] = await connection.query('SELECT @@autocommit')
  if (commits !== '1') throw notCommitting()
  if (createSchema) await ensureSchema(connection, names)
}
