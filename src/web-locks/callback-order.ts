import { type Deferred, deferred } from '../base/deferred.js'
import type { Env } from '../base/env.js'

/**
 * A store that does not answer for one lock must not block the callbacks of others for ever. Longer
 * than a busy machine stalls: a late timer does not mean that the store is silent.
 */
const LONGEST_WAIT_MS = 3000

/** The place of one request in the order of callbacks. */
export interface CallbackSlot {
  /** Waits until the slots of all earlier requests have ended, for a bounded time. */
  wait(env: Env): Promise<void>
  /** The request was called back, waits in line, or failed. May be called again. */
  end(): void
}

/**
 * The order in which requests are called back. The specification handles them one after the other,
 * also for different names; a store may answer for one name before it answers for another.
 */
export class CallbackOrder {
  /** Resolves when all open slots have ended; null: none is open. */
  #last: Promise<void> | null = null

  open(): CallbackSlot {
    const before = this.#last
    const own: Deferred<void> = deferred()
    let hasEnded = false
    const all = before === null ? own.promise : before.then(() => own.promise)
    this.#last = all
    void all.then(() => {
      if (this.#last === all) this.#last = null
    })
    return {
      async wait(env) {
        if (hasEnded || before === null) return
        const timeout = deferred<void>()
        const cancel = env.timer(LONGEST_WAIT_MS, timeout.resolve, { keepAlive: true })
        await Promise.race([before, timeout.promise])
        cancel()
      },
      end() {
        hasEnded = true
        own.resolve()
      },
    }
  }
}
