import { type Deferred, deferred } from '../base/deferred.js'
import type { Env } from '../base/env.js'

/**
 * The requests that the store has not answered yet. The specification has one queue for everything
 * a lock manager does, so work that must come after earlier requests waits for their answers.
 */
export class Unanswered {
  readonly #requests = new Set<Deferred<void>>()

  /** Adds a request. The returned function marks it as answered, and may be called again. */
  add(): () => void {
    const request = deferred<void>()
    this.#requests.add(request)
    return () => {
      this.#requests.delete(request)
      request.resolve()
    }
  }

  /** Waits for the requests that are unanswered now. */
  async wait(): Promise<void> {
    await Promise.all([...this.#requests].map(({ promise }) => promise))
  }

  async waitAtMost(env: Env, ms: number): Promise<void> {
    if (this.#requests.size === 0) return
    const timeout = deferred<void>()
    const cancel = env.timer(ms, timeout.resolve, { keepAlive: true })
    await Promise.race([this.wait(), timeout.promise])
    cancel()
  }
}
