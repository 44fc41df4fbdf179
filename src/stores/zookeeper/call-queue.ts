/** Runs calls one at a time, in the order in which they came. */
export class CallQueue {
  #isBusy = false
  #waiting: (() => void)[] | null = null

  async run<T>(call: () => Promise<T>): Promise<T> {
    if (this.#isBusy) await this.#turn()
    this.#isBusy = true
    try {
      return await call()
    } finally {
      const next = this.#waiting?.shift()
      if (next) next()
      else this.#isBusy = false
    }
  }

  #turn(): Promise<void> {
    const waiting = this.#waiting ?? []
    this.#waiting = waiting
    return new Promise((resolve) => waiting.push(resolve))
  }
}
