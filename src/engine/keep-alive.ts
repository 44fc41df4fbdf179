import type { Cancel, Env } from '../base/env.js'
import { nothing } from '../base/nothing.js'

/** Keeps the process from ending for want of other work while somebody waits without a limit: one timer, however many wait. */
export class KeepAlive {
  readonly #env: Env
  #waiting = 0
  #stop: Cancel = nothing

  constructor(env: Env) {
    this.#env = env
  }

  /** The returned function ends it. */
  begin(): Cancel {
    if (this.#waiting++ === 0) this.#stop = this.#env.timer(Infinity, nothing, { keepAlive: true })
    let isOver = false
    return () => {
      if (!isOver && --this.#waiting === 0) this.#stop()
      isOver = true
    }
  }
}
