import { deferred } from '../base/deferred.js'
import type { Env } from '../base/env.js'
import { type Limits, waitLocally } from './limits.js'

/** Takes turns inside this process, in order of arrival; those who share go in together. */
export class Turns {
  /** Settles when the last turn that excludes others is over, and all before it. */
  #exclusive: Promise<unknown> = Promise.resolve()
  /** The shared turns that came after that one. */
  #shared = new Set<Promise<unknown>>()
  readonly #taken = { exclusive: 0, shared: 0 }

  isFree(isShared: boolean): boolean {
    return this.#taken.exclusive === 0 && (isShared || this.#taken.shared === 0)
  }

  /** Waits for its turn; the returned function ends it. */
  async take(env: Env, isShared: boolean, limits: Limits, resource: string): Promise<() => void> {
    const isFree = this.isFree(isShared)
    const kind = isShared ? 'shared' : 'exclusive'
    const { before, over } = this.#join(isShared)
    this.#taken[kind]++
    const leave = (): void => {
      this.#taken[kind]--
      over()
    }
    try {
      if (!isFree) await waitLocally(env, before, limits, resource)
    } catch (error) {
      leave()
      throw error
    }
    return leave
  }

  #join(isShared: boolean): { before: Promise<unknown>; over: () => void } {
    const mine = deferred<void>()
    const shared = this.#shared
    if (isShared) {
      shared.add(mine.promise)
      void mine.promise.then(() => shared.delete(mine.promise))
      return { before: this.#exclusive, over: mine.resolve }
    }
    const before = Promise.all([this.#exclusive, ...shared])
    this.#exclusive = before.then(() => mine.promise)
    this.#shared = new Set()
    return { before, over: mine.resolve }
  }
}
