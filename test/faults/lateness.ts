import { now, pass } from '../../src/testing/conformance/checks.js'

const TICK_MS = 10

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
    return this.#totalMs + Math.max(0, now() - this.#tickedAt - TICK_MS)
  }

  stop(): void {
    this.#isOver = true
  }

  async #tick(): Promise<void> {
    while (!this.#isOver) {
      await pass(TICK_MS)
      // One look at the clock: what passed between two would be lost.
      const at = now()
      this.#totalMs += Math.max(0, at - this.#tickedAt - TICK_MS)
      this.#tickedAt = at
    }
  }
}
