import type { Env } from '../../base/env.js'

/**
 * memcached adds two clocks that it has cut to whole seconds, and looks at them once a second. So
 * what it tells is up to a second ahead of its machine, and up to three seconds behind.
 */
const AHEAD_MS = 1000
const BEHIND_MS = 3000
/** Its look at the clock may be late on a busy machine. */
const LATE_MS = 1000
/** Readings of the two clocks of this process, one right after the other. */
const MOST_READINGS = 5
const CLOSE_MS = 0.1
/** The two clocks of a process drift by less between two questions. */
const MOVED_MS = 500

/**
 * The server's time in milliseconds, as this process computes it: by its monotonic clock, which its
 * wall clock sets. A wall clock that cannot fit what the server tells is not believed.
 */
export class ServerClock {
  readonly #env: Env
  #offsetMs: number
  /** How far the wall clock was ahead of the monotonic one, when the server was last asked. */
  #wallOffsetMs: number
  /** When the server was last asked, on the monotonic clock. */
  askedAt = -Infinity

  constructor(env: Env) {
    this.#env = env
    this.#wallOffsetMs = wallOffsetMs(env)
    this.#offsetMs = this.#wallOffsetMs
  }

  /** The server's time at that moment of the monotonic clock. */
  at(now: number): number {
    return now + this.#offsetMs
  }

  /**
   * Whether the wall clock was set, or this machine was suspended: the monotonic clock stands still
   * then. The server has to be asked again.
   */
  get hasMoved(): boolean {
    const apartMs = this.#env.wallMs() - this.#env.now() - this.#wallOffsetMs
    return Math.abs(apartMs) > MOVED_MS
  }

  /** The server told its time, in seconds, between these moments of the monotonic clock. */
  set(seconds: number, sentAt: number, receivedAt: number): void {
    const toldMs = seconds * 1000
    const wallMs = wallOffsetMs(this.#env)
    const isPossible =
      wallMs >= toldMs - AHEAD_MS - receivedAt && wallMs <= toldMs + BEHIND_MS + LATE_MS - sentAt
    this.#offsetMs = isPossible ? wallMs : toldMs + (BEHIND_MS - AHEAD_MS) / 2 - receivedAt
    this.#wallOffsetMs = wallMs
    this.askedAt = receivedAt
  }
}

/**
 * How far the wall clock is ahead of the monotonic one. A pause between the two readings would make
 * this process slower than others by as much, so the closest pair of readings counts.
 */
function wallOffsetMs(env: Env): number {
  let offsetMs = 0
  let closestMs = Infinity
  for (let reading = 0; reading < MOST_READINGS && closestMs > CLOSE_MS; reading++) {
    const before = env.now()
    const wallMs = env.wallMs()
    const apartMs = env.now() - before
    if (apartMs >= closestMs) continue
    closestMs = apartMs
    offsetMs = wallMs - before - apartMs / 2
  }
  return offsetMs
}
