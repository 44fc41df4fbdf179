import type { Cancel, Env } from '../base/env.js'

/**
 * One timer for everything that a client has to do at some moment. Moments may be moved forward at will; one that turns out to
 * be unnecessary just leads to an empty look around. It never keeps the process alive: waiting callers do that by themselves.
 */
export class Agenda {
  readonly #env: Env
  readonly #work: () => void
  #at = Infinity
  #cancel: Cancel = () => {}

  constructor(env: Env, work: () => void) {
    this.#env = env
    this.#work = work
  }

  /** Makes sure that the work is done at `at`, or earlier. */
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
