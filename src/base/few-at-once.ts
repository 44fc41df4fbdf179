import type { Cancel, Env } from './env.js'

export interface FewAtOnceOptions {
  readonly env: Env
  /** The most pieces of work at a time. */
  most(): number
  /**
   * Work that takes longer may be on a dead connection: it no longer counts, and the next begins.
   */
  readonly patienceMs: number
}

/** Runs a limited number of tasks at a time, and queues the rest in order. */
export class FewAtOnce {
  readonly #options: FewAtOnceOptions
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(options: FewAtOnceOptions) {
    this.#options = options
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    const { env, most, patienceMs } = this.#options
    if (this.#waiting.length > 0 || this.#running >= most())
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running++
    let hasEnded = false
    const end = (): void => {
      cancel()
      if (hasEnded) return
      hasEnded = true
      this.#running--
      this.#startNext()
    }
    const cancel: Cancel = env.timer(patienceMs, end, { keepAlive: false })
    try {
      return await work()
    } finally {
      end()
    }
  }

  #startNext(): void {
    const free = this.#options.most() - this.#running
    for (const start of this.#waiting.splice(0, Math.max(0, free))) {
      this.#running++
      start()
    }
  }
}
