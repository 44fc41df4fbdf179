import type { Env } from '../../base/env.js'
import type { Driver, Replicas } from './driver.js'
import type { Script, Scripts } from './lua/script.js'

export interface RunnerOptions {
  openDriver(): Promise<Driver>
  readonly retentionMs: number
  /** null: the server's clock, as it must be. A simulation gives its own. */
  readonly clock: Env | null
}

/** Runs scripts on a Redis that is opened at the first call. */
export class Runner {
  readonly #options: RunnerOptions
  #opening: Promise<Driver> | undefined
  driver: Driver | undefined

  constructor(options: RunnerOptions) {
    this.#options = options
  }

  /** A failed attempt is forgotten: the next call tries anew. */
  open(): Promise<Driver> {
    this.#opening ??= this.#options.openDriver().then(
      (driver) => {
        this.driver = driver
        return driver
      },
      (error) => {
        this.#opening = undefined
        throw error
      },
    )
    return this.#opening
  }

  async run(scripts: Scripts, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const driver = this.driver ?? (await this.open())
    return driver.run(this.#scriptOf(scripts), keys, this.#withConstants(args))
  }

  async runDurably(scripts: Scripts, keys: readonly string[], args: readonly string[], wanted: Replicas) {
    const driver = this.driver ?? (await this.open())
    return driver.runDurably(this.#scriptOf(scripts), keys, this.#withConstants(args), wanted)
  }

  async close(): Promise<void> {
    const opening = this.#opening
    this.#opening = undefined
    this.driver = undefined
    const driver = await opening?.catch(() => undefined)
    await driver?.close()
  }

  #scriptOf(scripts: Scripts): Script {
    return this.#options.clock ? scripts.byCaller : scripts.byServer
  }

  #withConstants(args: readonly string[]): string[] {
    const { retentionMs, clock } = this.#options
    const complete = [String(retentionMs), ...args]
    if (clock) complete.push(String(Math.round(clock.wallMs() * 1000)))
    return complete
  }
}
