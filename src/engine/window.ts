/** The initial and the largest size. */
const MOST_CALLS = 16
/** An answer this many times slower than the quickest ones had to queue. */
const SLOW = 2
/** Smaller differences are noise. */
const NOISE_MS = 10
/** Lets the quickest time grow slowly: stores become slower, too. */
const FORGET = 1.05

/**
 * How many calls may be in flight at once. A distant store gets several. A store that slows down
 * under several gets fewer: renewals lose the time that a call spends queued.
 */
export class Window {
  #size = MOST_CALLS
  #inFlight = 0
  #lastSentAt = -Infinity
  #quickestMs = Infinity
  #shrunkAt = -Infinity

  /** A call that is not full waits for the one in flight, so that more fits into it. */
  isOpen(isFull: boolean): boolean {
    return this.#inFlight === 0 || (isFull && this.#inFlight < this.#size)
  }

  get lastSentAt(): number {
    return this.#lastSentAt
  }

  sent(now: number): void {
    this.#inFlight++
    this.#lastSentAt = now
  }

  /** It was answered, or has timed out. */
  over(): void {
    this.#inFlight--
  }

  answered(sentAt: number, now: number): void {
    const tookMs = now - sentAt
    this.#quickestMs = Math.min(tookMs, this.#quickestMs * FORGET)
    if (tookMs > this.#quickestMs * SLOW + NOISE_MS) this.shrink(sentAt, now)
    else this.#size = Math.min(MOST_CALLS, this.#size + 1)
  }

  /** Shrinks once for all calls that were sent together. */
  shrink(sentAt: number, now: number): void {
    if (sentAt < this.#shrunkAt) return
    this.#shrunkAt = now
    this.#size = Math.max(1, Math.floor(this.#size / 2))
  }
}
