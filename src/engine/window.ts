/** At first, and at most. */
const MOST_CALLS = 16
/** An answer that takes so many times as long as the quickest ones has waited for others. */
const SLOW = 2
/** Less than that is chance. */
const NOISE_MS = 10
/** What the quickest call took is forgotten little by little: stores become slower, too. */
const FORGET = 1.05

/**
 * How many calls may be on their way at once. A store that is far away is sent several; one that answers the later the more
 * there are works on one after the other, and gets the next one when it is about to be through: the time that a call stands in line
 * is time that its renewals lose.
 */
export class Window {
  #size = MOST_CALLS
  #underWay = 0
  #lastSentAt = -Infinity
  #quickestMs = Infinity
  #shrunkAt = -Infinity

  /** What does not fill a call waits for the one that is under way, so that more of it travels together. */
  isOpen(isFull: boolean): boolean {
    return this.#underWay === 0 || (isFull && this.#underWay < this.#size)
  }

  /** When the last call was sent. */
  get lastSentAt(): number {
    return this.#lastSentAt
  }

  sent(now: number): void {
    this.#underWay++
    this.#lastSentAt = now
  }

  /** It was answered, or has been silent for too long to count. */
  over(): void {
    this.#underWay--
  }

  answered(sentAt: number, now: number): void {
    const tookMs = now - sentAt
    this.#quickestMs = Math.min(tookMs, this.#quickestMs * FORGET)
    if (tookMs > this.#quickestMs * SLOW + NOISE_MS) this.shrink(sentAt, now)
    else this.#size = Math.min(MOST_CALLS, this.#size + 1)
  }

  /** Once for all calls that were sent together. */
  shrink(sentAt: number, now: number): void {
    if (sentAt < this.#shrunkAt) return
    this.#shrunkAt = now
    this.#size = Math.max(1, Math.floor(this.#size / 2))
  }
}
