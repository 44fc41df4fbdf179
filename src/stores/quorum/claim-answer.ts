import type { Env } from '../../base/env.js'
import { nothing } from '../../base/nothing.js'
import type { ClaimReply } from '../../contract/store.js'

/** The answer to the engine's call, and those that wait for what becomes of the claim. */
export class ClaimAnswer {
  readonly promise: Promise<ClaimReply>
  isGiven = false
  #resolve: (reply: ClaimReply) => void = nothing
  #reject: (error: unknown) => void = nothing
  readonly #onDecided: (() => void)[] = []

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Only the first answer counts. */
  give(reply: ClaimReply): void {
    this.isGiven = true
    this.#resolve(reply)
  }

  fail(error: unknown): void {
    this.#reject(error)
  }

  /** Resolves when it is decided whether the claim is held, or after that time. */
  decided(env: Env, withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = env.timer(withinMs, resolve, { keepAlive: true })
      this.#onDecided.push(() => {
        cancel()
        resolve()
      })
    })
  }

  tellDecided(): void {
    for (const tell of this.#onDecided.splice(0)) tell()
  }
}
