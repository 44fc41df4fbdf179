import { deferred } from '../base/deferred.js'
import type { Env } from '../base/env.js'
import { type Limits, waitLocally } from './limits.js'

/** Takes turns inside this process, in order of arrival. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()
  #taken = 0

  get isFree(): boolean {
    return this.#taken === 0
  }

  /** Waits for its turn; the returned function ends it. */
  async take(env: Env, limits: Limits, resource: string): Promise<() => void> {
    const before = this.#last
    const isFree = this.isFree
    const mine = deferred<void>()
    this.#taken++
    this.#last = before.then(() => mine.promise)
    const leave = (): void => {
      this.#taken--
      mine.resolve()
    }
    try {
      if (!isFree) await waitLocally(env, before, limits, resource)
    } catch (error) {
      leave()
      throw error
    }
    return leave
  }
}
