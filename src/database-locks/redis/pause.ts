import type { Env } from '../../base/env.js'
import { nothing } from '../../base/nothing.js'

/** A pause that a wake-up ends early. A wake-up between two pauses ends the next one at once. */
export class Pause {
  readonly #env: Env
  #isWoken = false
  #end: () => void = nothing

  constructor(env: Env) {
    this.#env = env
  }

  wake(): void {
    this.#isWoken = true
    this.#end()
  }

  /** Takes a wake-up back that was not used. Returns whether there was one. */
  takeWakeUp(): boolean {
    const wasWoken = this.#isWoken
    this.#isWoken = false
    return wasWoken
  }

  async last(ms: number): Promise<void> {
    if (this.#isWoken || ms <= 0) {
      this.#isWoken = false
      return
    }
    await new Promise<void>((resolve) => {
      const cancel = this.#env.timer(ms, resolve, { keepAlive: true })
      this.#end = () => {
        cancel()
        resolve()
      }
    })
    this.#end = nothing
    this.#isWoken = false
  }
}
