import type { Driver, Listener, ListenHandlers, Value } from './driver.js'

/** Calls go through one driver, for example to a pooler, and messages come through another. */
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

  listen(channel: string, handlers: ListenHandlers): Promise<Listener | null> {
    return this.#messages.listen(channel, handlers)
  }

  async close(): Promise<void> {
    await Promise.all([this.#calls.close(), this.#messages.close()])
  }
}
