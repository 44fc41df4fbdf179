import { HoldfastError } from '../../base/errors.js'
import type { PostgresDriver } from './driver.js'
import { isMissing } from './failures.js'
import { inSchema, installText, SCHEMA_VERSION } from './schema.js'

/** What can run the installation: a pool, or one of its connections. */
export type InstallationDriver = Pick<PostgresDriver, 'ask' | 'run'>

/** Creates the schema where it is missing, once. */
export class Installation {
  readonly #schema: string
  #done: Promise<void> | undefined
  /** Not all that this version has is there. */
  #isIncomplete = false

  constructor(schema: string) {
    this.#schema = schema
  }

  ensure(driver: InstallationDriver): Promise<void> {
    if (this.#done) return this.#done
    const done = this.#install(driver)
    this.#done = done
    done.catch(() => {
      if (this.#done === done) this.#done = undefined
    })
    return done
  }

  /** The next call checks again. */
  forget(): void {
    this.#done = undefined
  }

  /** A part is missing: dropped, not in a backup, or newer than the Holdfast that created it. */
  onMissing(): void {
    this.#isIncomplete = true
    this.forget()
  }

  async #install(driver: InstallationDriver): Promise<void> {
    const version = await this.#version(driver)
    if (version > SCHEMA_VERSION)
      throw new HoldfastError(
        'UNSUPPORTED',
        `The schema ${this.#schema} was made by a newer Holdfast (version ${version}, this one knows ${SCHEMA_VERSION}); update this one`,
        { store: 'postgres' },
      )
    if (version < SCHEMA_VERSION || this.#isIncomplete) await driver.run(installText(this.#schema))
    this.#isIncomplete = false
  }

  async #version(driver: InstallationDriver): Promise<number> {
    try {
      return Number(await driver.ask(inSchema('SELECT version::text FROM holdfast.meta', this.#schema), []))
    } catch (error) {
      if (isMissing(error)) return 0
      throw error
    }
  }
}
