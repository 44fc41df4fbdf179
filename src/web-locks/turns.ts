import { type Deferred, deferred } from '../base/deferred.js'
import type { Env } from '../base/env.js'

/**
 * A store that is silent about one lock shall not keep the callback of another waiting for ever.
 * Longer than a busy machine stands still: a late timer is no silence.
 */
const PATIENCE_MS = 3000

/** A request's turn to be called back. */
export interface Turn {
  /** Waits until all that were requested earlier have had their turns, for a bounded time. */
  come(env: Env): Promise<void>
  /** It was called back, stands in line, or failed. May be called again. */
  end(): void
}

/**
 * The order in which requests are called back. The specification handles them one after the other,
 * whatever their names are; a store may answer for one name before it answers for another.
 */
export class Turns {
  /** The end of the turns that are still open. */
  #last: Promise<void> | null = null

  take(): Turn {
    const before = this.#last
    const own: Deferred<void> = deferred()
    let isOver = false
    const all = before === null ? own.promise : before.then(() => own.promise)
    this.#last = all
    void all.then(() => {
      if (this.#last === all) this.#last = null
    })
    return {
      async come(env) {
        if (isOver || before === null) return
        const enough = deferred<void>()
        const cancel = env.timer(PATIENCE_MS, enough.resolve, { keepAlive: true })
        await Promise.race([before, enough.promise])
        cancel()
      },
      end() {
        isOver = true
        own.resolve()
      },
    }
  }
}
