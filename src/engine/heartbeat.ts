/** When the pulse speaks of a lease, and since when the store has not answered about it. */
export class Heartbeat {
  dueAt = Infinity
  /** How long after the last answer that is. */
  intervalMs = 0
  /** A pulse with this lease is under way. */
  isSent = false
  /** Something has happened since that pulse was sent: ask again as soon as it is answered. */
  isHurried = false
  /** Since when calls have gone unanswered; null: the last one was answered. */
  silentSince: number | null = null
  /** How the last unanswered call failed. */
  silentBecause: unknown
  #ahead: number | null = null
  #aheadChangedAt = -Infinity

  unanswered(since: number, cause: unknown): void {
    this.silentSince ??= since
    this.silentBecause = cause
  }

  /**
   * The store has said how many wait ahead. Gives how long that has not changed. A new waiter
   * counts as one whose line has just moved: on a hot lock its turn comes soon.
   */
  noteAhead(ahead: number, now: number): number {
    if (ahead !== this.#ahead) this.#aheadChangedAt = now
    this.#ahead = ahead
    return now - this.#aheadChangedAt
  }
}
