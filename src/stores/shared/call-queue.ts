/** Lets calls run one at a time, in the order in which they came. */
export class CallQueue {
  #isBusy = false
  #waiting: (() => void)[] | null = null

  /** Resolves when it is this call's turn; null: it is at once. */
  enter(): Promise<void> | null {
    if (this.#isBusy) return this.#turn()
    this.#isBusy = true
    return null
  }

  /** Exactly once for each `enter`. */
  leave(): void {
    const next = this.#waiting?.shift()
    if (next) next()
    else this.#isBusy = false
  }

  async run<T>(call: () => Promise<T>): Promise<T> {
    const turn = this.enter()
    if (turn) await turn
    try {
      return await call()
    } finally {
      this.leave()
    }
  }

  #turn(): Promise<void> {
    const waiting = this.#waiting ?? []
    this.#waiting = waiting
    return new Promise((resolve) => waiting.push(resolve))
  }
}
