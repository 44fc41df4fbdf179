import type { Cancel, Env } from '../base/env.js'
import { nothing } from '../base/nothing.js'

/** Keeps the process alive while a caller waits without a limit: one timer, however many wait. */
export class ProcessHold {
  readonly #env: Env
  #waiting = 0
  #stop: Cancel = nothing

  constructor(env: Env) {
    this.#env = env
  }

  begin(): void {
    if (this.#waiting++ === 0) this.#stop = this.#env.timer(Infinity, nothing, { keepAlive: true })
  }

  end(): void {
    if (--this.#waiting === 0) this.#stop()
  }
}
