import { now, pass } from '../../src/testing/conformance/checks.js'

const TICK_MS = 10
/** A timer is that late on an idle machine, too. */
const USUAL_MS = 5

/**
 * How long this process has stood still against its will, in all: because the machine did, or had
 * too much to do. What has to happen within a time may take so much longer.
 */
export class Lateness {
  #totalMs = 0
  #tickedAt = now()
  #isOver = false

  constructor() {
    void this.#tick()
  }

  get totalMs(): number {
    return this.#totalMs + lateBy(now() - this.#tickedAt)
  }

  stop(): void {
    this.#isOver = true
  }

  async #tick(): Promise<void> {
    while (!this.#isOver) {
      await pass(TICK_MS)
      // One look at the clock: what passed between two would be lost.
      const at = now()
      this.#totalMs += lateBy(at - this.#tickedAt)
      this.#tickedAt = at
    }
  }
}

function lateBy(tookMs: number): number {
  return tookMs > TICK_MS + USUAL_MS ? tookMs - TICK_MS : 0
}
