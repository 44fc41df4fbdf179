import type { Env } from '../../base/env.js'

/**
 * memcached tells whole seconds, and moves them on by a timer of its own: what it tells is up to
 * this much behind.
 */
const BEHIND_MS = 2000

/**
 * The server's time in milliseconds, as this process computes it: by its monotonic clock, which its
 * wall clock sets. A wall clock that does not fit what the server tells is corrected.
 */
export class ServerClock {
  readonly #env: Env
  #offsetMs: number
  /** When the server was last asked, on the monotonic clock. */
  askedAt = -Infinity

  constructor(env: Env) {
    this.#env = env
    this.#offsetMs = env.wallMs() - env.now()
  }

  /** The server's time at that moment of the monotonic clock. */
  at(now: number): number {
    return now + this.#offsetMs
  }

  /** The server told its time, in seconds, between these moments of the monotonic clock. */
  set(seconds: number, sentAt: number, receivedAt: number): void {
    const leastMs = seconds * 1000 - receivedAt
    const mostMs = seconds * 1000 + BEHIND_MS - sentAt
    const wallMs = this.#env.wallMs() - this.#env.now()
    this.#offsetMs = Math.min(Math.max(wallMs, leastMs), mostMs)
    this.askedAt = receivedAt
  }
}
