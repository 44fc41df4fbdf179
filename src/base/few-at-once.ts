import type { Cancel, Env } from './env.js'

export interface FewAtOnceOptions {
  readonly env: Env
  /** How many at a time. */
  most(): number
  /** Work that takes longer may be on a connection that is dead: it counts no more, and what is behind it goes on. */
  readonly patienceMs: number
}

/** Does so many things at once, and the rest in their order as those are done. */
export class FewAtOnce {
  readonly #options: FewAtOnceOptions
  readonly #waiting: (() => void)[] = []
  #underWay = 0

  constructor(options: FewAtOnceOptions) {
    this.#options = options
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    const { env, most, patienceMs } = this.#options
    if (this.#waiting.length > 0 || this.#underWay >= most())
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#underWay++
    let isOver = false
    const over = (): void => {
      cancel()
      if (isOver) return
      isOver = true
      this.#underWay--
      this.#letIn()
    }
    const cancel: Cancel = env.timer(patienceMs, over, { keepAlive: false })
    try {
      return await work()
    } finally {
      over()
    }
  }

  #letIn(): void {
    const free = this.#options.most() - this.#underWay
    for (const enter of this.#waiting.splice(0, Math.max(0, free))) {
      this.#underWay++
      enter()
    }
  }
}
