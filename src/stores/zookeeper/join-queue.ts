/**
 * Lets the claims of one client join a line one by one while the line's node may be missing.
 * Otherwise a later claim could join between the creation of that node and the first claim's second
 * attempt.
 */
export class JoinQueue {
  /** By resource, while a claim joins its line: the claims that wait to join. */
  readonly #waiting = new Map<string, (() => void)[]>()

  isClosed(resource: string): boolean {
    return this.#waiting.has(resource)
  }

  /**
   * Closes the line to later claims. Resolves when the earlier ones have joined or failed; null:
   * there are none.
   */
  close(resource: string): Promise<void> | null {
    const waiting = this.#waiting.get(resource)
    if (waiting) return new Promise<void>((resolve) => waiting.push(resolve))
    this.#waiting.set(resource, [])
    return null
  }

  /**
   * Exactly once for each `close`. The line stays closed while others wait, so that none overtakes
   * them.
   */
  open(resource: string): void {
    const next = this.#waiting.get(resource)?.shift()
    if (next) next()
    else this.#waiting.delete(resource)
  }

  /** Resolves when all earlier claims have joined or failed. */
  async drained(resource: string): Promise<void> {
    if (!this.isClosed(resource)) return
    await this.close(resource)
    this.open(resource)
  }
}
