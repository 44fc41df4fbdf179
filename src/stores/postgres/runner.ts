import type { PostgresDriver, Value } from './driver.js'
import { closed, explain, isMissing, isUndone } from './failures.js'
import { Installation } from './install.js'
import { inSchema } from './schema.js'

export interface PostgresRunnerOptions {
  readonly schema: string
  openDriver(): Promise<PostgresDriver>
}

/** How often a transaction that the server has rolled back is tried at once. */
const MOST_ATTEMPTS = 10

/** Runs statements; opens the pool at the first call, and creates a missing schema. */
export class PostgresRunner {
  readonly #options: PostgresRunnerOptions
  readonly #installation: Installation
  #isInUse = false
  #driver: Promise<PostgresDriver> | undefined
  #atOnce = 1

  constructor(options: PostgresRunnerOptions) {
    this.#options = options
    this.#installation = new Installation(options.schema)
  }

  /** How many statements may be under way at once. */
  get atOnce(): number {
    return this.#atOnce
  }

  /** Allows calls until `close`. */
  use(): void {
    this.#isInUse = true
  }

  async close(): Promise<void> {
    this.#isInUse = false
    const driver = this.#driver
    this.#driver = undefined
    this.#installation.forget()
    await (await driver?.catch(() => undefined))?.close()
  }

  /** One statement, written for the schema `holdfast`. */
  async ask(sql: string, values: readonly Value[]): Promise<string | null> {
    const text = inSchema(sql, this.#options.schema)
    for (let attempt = 1; ; attempt++) {
      try {
        const driver = await this.open()
        await this.#installation.ensure(driver)
        return await driver.ask(text, values)
      } catch (error) {
        if (attempt >= MOST_ATTEMPTS || !(isUndone(error) || (isMissing(error) && attempt === 1)))
          throw explain(error)
        if (isMissing(error)) this.#installation.onMissing()
      }
    }
  }

  /** Asks the server about itself, whether the schema is there or not. */
  async askServer(sql: string): Promise<string | null> {
    try {
      return await (await this.open()).ask(sql, [])
    } catch (error) {
      throw explain(error)
    }
  }

  /** A call after the last client was closed must not open anything: it would stay open. */
  open(): Promise<PostgresDriver> {
    if (!this.#isInUse) return Promise.reject(closed())
    if (this.#driver) return this.#driver
    const driver = this.#options.openDriver()
    this.#driver = driver
    driver.then(
      ({ atOnce }) => {
        this.#atOnce = atOnce
      },
      () => {
        if (this.#driver === driver) this.#driver = undefined
      },
    )
    return driver
  }
}
