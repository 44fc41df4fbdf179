import type { Cancel, Env } from '../../base/env.js'

/** Work that takes longer may be on a connection that is dead: what is behind it goes on. */
const PATIENCE_MS = 5000

/** Does one thing after the other: all at once they would only wait for the same rows, each with a connection of the pool. */
export class OneByOne {
  readonly #env: Env
  #last: Promise<unknown> = Promise.resolve()

  constructor(env: Env) {
    this.#env = env
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work)
    this.#last = this.#settledOrLate(mine)
    return mine
  }

  async #settledOrLate(work: Promise<unknown>): Promise<void> {
    let cancel: Cancel = () => {}
    const late = new Promise<void>((resolve) => {
      cancel = this.#env.timer(PATIENCE_MS, resolve, { keepAlive: false })
    })
    await Promise.race([work.catch(() => {}), late])
    cancel()
  }
}
