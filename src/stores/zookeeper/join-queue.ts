/**
 * Lets the claims of one client join a line one by one while the line's node may be missing. Otherwise a later claim
 * could join between the creation of that node and the first claim's second attempt.
 */
export class JoinQueue {
  /** By line, while a claim joins it: the claims that wait to join. */
  readonly #waiting = new Map<string, (() => void)[]>()

  isClosed(line: string): boolean {
    return this.#waiting.has(line)
  }

  /** Closes the line to later claims. Resolves when the earlier ones have joined or failed; null: there are none. */
  close(line: string): Promise<void> | null {
    const waiting = this.#waiting.get(line)
    if (waiting) return new Promise<void>((resolve) => waiting.push(resolve))
    this.#waiting.set(line, [])
    return null
  }

  /** Exactly once for each `close`. The line stays closed while others wait, so that none overtakes them. */
  open(line: string): void {
    const next = this.#waiting.get(line)?.shift()
    if (next) next()
    else this.#waiting.delete(line)
  }

  /** Resolves when all earlier claims have joined or failed. */
  async drained(line: string): Promise<void> {
    if (!this.isClosed(line)) return
    await this.close(line)
    this.open(line)
  }
}
