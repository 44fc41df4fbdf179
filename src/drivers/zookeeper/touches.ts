/** Answers that come within this part of a tick are remembered as one. */
const FINENESS = 1 / 8

interface Touch {
  readonly sentAt: number
  readonly answeredAt: number
}

/**
 * The signs of life on one connection, to know since when the leader counts the session's timeout.
 * Our server notes each request or ping, and reports them to the leader when the leader asks, each
 * half a tick. So when the leader handles a write, it knows of everything that our server had
 * answered a tick before. Opening a connection asks the leader itself.
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

  /**
   * When the last request was sent of which the leader knows when it handles a write that is sent
   * now.
   */
  knownAt(now: number): number {
    this.#forget(now)
    return this.#touches[0]?.sentAt ?? -Infinity
  }

  /** Drops all before the latest one that the leader knows of. */
  #forget(now: number): void {
    while ((this.#touches[1]?.answeredAt ?? Infinity) <= now - this.#tickMs) this.#touches.shift()
  }
}
