const MOST_RESOURCES = 10_000

/**
 * The highest fence that this client has seen of each resource, in case a store loses its counter.
 * Best effort: the least recently used names are forgotten.
 */
export class Floors {
  readonly #highest = new Map<string, number>()

  of(resource: string): number {
    return this.#highest.get(resource) ?? 0
  }

  note(resource: string, fence: number): void {
    const highest = Math.max(fence, this.of(resource))
    this.#highest.delete(resource)
    this.#highest.set(resource, highest)
    if (this.#highest.size <= MOST_RESOURCES) return
    for (const oldest of this.#highest.keys()) {
      this.#highest.delete(oldest)
      break
    }
  }
}
