import type { ListenHandlers, PostgresDriver, PostgresListener, Value } from './driver.js'

/** Calls go through one driver, for example to a pooler, and messages come through another. */
export class SplitDriver implements PostgresDriver {
  readonly #calls: PostgresDriver
  readonly #messages: PostgresDriver

  constructor(calls: PostgresDriver, messages: PostgresDriver) {
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

  listen(channel: string, handlers: ListenHandlers): Promise<PostgresListener | null> {
    return this.#messages.listen(channel, handlers)
  }

  async close(): Promise<void> {
    await Promise.all([this.#calls.close(), this.#messages.close()])
  }
}
