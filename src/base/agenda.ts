import type { Cancel, Env } from './env.js'

/** One timer for all work of a client; running it early is safe. Never keeps the process alive. */
export class Agenda {
  readonly #env: Env
  readonly #work: () => void
  #at = Infinity
  #cancel: Cancel = () => {}

  constructor(env: Env, work: () => void) {
    this.#env = env
    this.#work = work
  }

  /** Runs the work at `at` or earlier. */
  by(at: number): void {
    if (at >= this.#at) return
    this.stop()
    this.#at = at
    this.#cancel = this.#env.timer(Math.max(0, at - this.#env.now()), () => this.#run(), { keepAlive: false })
  }

  stop(): void {
    this.#cancel()
    this.#at = Infinity
  }

  #run(): void {
    this.#at = Infinity
    this.#work()
  }
}
