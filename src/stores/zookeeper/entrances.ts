/** One claim's way into a line, which is closed for those behind it. */
export interface Entrance {
  /** Resolves when it is this one's turn; null: at once. */
  readonly turn: Promise<void> | null
  /** Lets the next one in. Harmless when called again. */
  open(): void
}

/**
 * Lets the claims of one client into a line one by one while the line's node may be missing. Until the first of them has made it and has its
 * place, a later one would find the line made and come in before it.
 */
export class Entrances {
  /** By line, of those that a claim is entering: the claims that wait for their turn. */
  readonly #waiting = new Map<string, (() => void)[]>()

  isClosed(line: string): boolean {
    return this.#waiting.has(line)
  }

  /** From its turn on, nobody else comes in until the claim opens it. */
  close(line: string): Entrance {
    const waiting = this.#waiting.get(line)
    if (!waiting) this.#waiting.set(line, [])
    let isOpen = false
    return {
      turn: waiting ? new Promise<void>((resolve) => waiting.push(resolve)) : null,
      open: () => {
        if (!isOpen) this.#open(line)
        isOpen = true
      },
    }
  }

  /** Resolves when all that came before are in line, or have failed. */
  async pass(line: string): Promise<void> {
    if (!this.isClosed(line)) return
    const entrance = this.close(line)
    await entrance.turn
    entrance.open()
  }

  /** It stays closed as long as others wait, so that nobody comes in between. */
  #open(line: string): void {
    const next = this.#waiting.get(line)?.shift()
    if (next) next()
    else this.#waiting.delete(line)
  }
}
