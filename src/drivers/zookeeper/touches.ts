/** Answers that come closer together than this part of a tick are remembered as one. */
const FINENESS = 1 / 8

interface Touch {
  readonly sentAt: number
  readonly answeredAt: number
}

/**
 * The signs of life on one connection, for "since when does the leader count our time-out?". The server that we are connected to notes
 * each request or ping, and tells the leader of all of them whenever the leader asks, each half a tick. So what it had answered a tick
 * before a write arrived, the leader knew when it handled that write. Opening the connection is different: that asks the leader.
 */
export class Touches {
  readonly #tickMs: number
  readonly #touches: Touch[]

  constructor(openedAt: number, tickMs: number) {
    this.#tickMs = tickMs
    this.#touches = [{ sentAt: openedAt, answeredAt: -Infinity }]
  }

  answered(sentAt: number, now: number): void {
    this.#forget(now)
    const last = this.#touches.at(-1)
    if (last && now - last.answeredAt < this.#tickMs * FINENESS) return
    this.#touches.push({ sentAt, answeredAt: now })
  }

  /** The latest sending that the leader knows of when it handles a write that is sent now. */
  knownAt(now: number): number {
    this.#forget(now)
    return this.#touches[0]?.sentAt ?? -Infinity
  }

  /** Those before the latest one that is known by now. */
  #forget(now: number): void {
    while ((this.#touches[1]?.answeredAt ?? Infinity) <= now - this.#tickMs) this.#touches.shift()
  }
}
