import { type Deferred, deferred } from '../base/deferred.js'
import type { Env } from '../base/env.js'

/**
 * The requests that the store has not answered yet. The specification puts all that a lock manager does into one queue; so whatever
 * must come after the requests that were made before it waits for their answers.
 */
export class Unanswered {
  readonly #requests = new Set<Deferred<void>>()

  /** Counts a request; the returned function tells that it is answered, and may be called again. */
  add(): () => void {
    const request = deferred<void>()
    this.#requests.add(request)
    return () => {
      this.#requests.delete(request)
      request.resolve()
    }
  }

  /** Waits for those that are there now. */
  async wait(): Promise<void> {
    await Promise.all([...this.#requests].map(({ promise }) => promise))
  }

  async waitAtMost(env: Env, ms: number): Promise<void> {
    if (this.#requests.size === 0) return
    const isOver = deferred<void>()
    const cancel = env.timer(ms, isOver.resolve, { keepAlive: true })
    await Promise.race([this.wait(), isOver.promise])
    cancel()
  }
}
