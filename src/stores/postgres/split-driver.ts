import type { Driver, Ear, EarHandlers, Value } from './driver.js'

/** Calls go one way, by a pooler for instance, and messages come another. */
export class SplitDriver implements Driver {
  readonly #calls: Driver
  readonly #messages: Driver

  constructor(calls: Driver, messages: Driver) {
    this.#calls = calls
    this.#messages = messages
  }

  get atOnce(): number {
    return this.#calls.atOnce
  }

  ask(sql: string, values: readonly Value[]): Promise<string | null> {
    return this.#calls.ask(sql, values)
  }

  run(script: string): Promise<void> {
    return this.#calls.run(script)
  }

  listen(channel: string, handlers: EarHandlers): Promise<Ear | null> {
    return this.#messages.listen(channel, handlers)
  }

  async close(): Promise<void> {
    await Promise.all([this.#calls.close(), this.#messages.close()])
  }
}
