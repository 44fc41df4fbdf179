import type { Lent, MysqlDriver } from '../../stores/mysql/driver.js'
import { makeSchema } from '../../stores/mysql/install.js'
import { MysqlRunner } from '../../stores/mysql/runner.js'
import type { MysqlNames } from '../../stores/mysql/sql/names.js'

/** A table of the schema that is created before its first use, and again if it was dropped. */
export class MysqlLockTable {
  /** Whether Holdfast may create it. */
  readonly isOurs: boolean
  readonly #runner: MysqlRunner
  readonly #names: MysqlNames
  readonly #check: string
  #ready: Promise<unknown> | undefined

  /** `column` is one that the table must have. */
  constructor(driver: MysqlDriver, names: MysqlNames, createSchema: boolean, table: string, column: string) {
    this.isOurs = createSchema
    this.#names = names
    this.#runner = new MysqlRunner({ openDriver: async () => driver, names, createSchema })
    this.#runner.use()
    this.#check = `SELECT ${column} FROM ${table} LIMIT 0`
  }

  /** The runner creates the schema where this statement finds none. */
  async ensure(): Promise<void> {
    const ready = this.#ready ?? this.#runner.query(this.#check)
    this.#ready = ready
    try {
      await ready
    } catch (error) {
      if (this.#ready === ready) this.#ready = undefined
      throw error
    }
  }

  /** Creates it by a connection that is lent already: the pool may have no other. */
  createBy(connection: Pick<Lent, 'query'>): Promise<void> {
    return makeSchema(connection, this.#names)
  }

  forget(): void {
    this.#ready = undefined
  }
}
