/** What one page of a long list brings. */
export type Page<T> = { total: number; items: readonly T[] }

type Load<T> = (offset: number, limit: number) => Promise<Page<T>>

/**
 * A long list of which only the visible pages are here. An old page stays until the new one has
 * come, so that nothing flickers.
 */
export class Pages<T> {
  total: number | null = null
  readonly size: number
  readonly #load: Load<T>
  readonly #changed: () => void
  readonly #items = new Map<number, T>()
  readonly #loading = new Set<number>()
  readonly #loaded = new Set<number>()
  #isOver = false

  constructor(size: number, load: Load<T>, changed: () => void) {
    this.size = size
    this.#load = load
    this.#changed = changed
  }

  at(index: number): T | undefined {
    return this.#items.get(index)
  }

  /** Loads the pages of these rows, unless they are here or under way. */
  async ensure(first: number, last: number): Promise<void> {
    const wanted: number[] = []
    for (let page = this.#pageOf(first); page <= this.#pageOf(Math.max(first, last)); page++)
      if (!this.#loaded.has(page) && !this.#loading.has(page)) wanted.push(page)
    await Promise.all(wanted.map((page) => this.#fetch(page)))
  }

  /** Every page is old: these rows are loaded again at once, the others when they are seen. */
  async refresh(first: number, last: number): Promise<void> {
    this.#loaded.clear()
    await this.ensure(first, last)
  }

  /** The rows from `offset` on, which came by another way. */
  put(offset: number, total: number, items: readonly T[]): void {
    this.#take(offset, total, items)
    this.#changed()
  }

  /** Changes the rows that are here. */
  replace(change: (item: T) => T): void {
    for (const [index, item] of this.#items) this.#items.set(index, change(item))
  }

  /** What still comes belongs to a list that nobody looks at any more. */
  end(): void {
    this.#isOver = true
  }

  async #fetch(page: number): Promise<void> {
    this.#loading.add(page)
    try {
      const { total, items } = await this.#load(page * this.size, this.size)
      if (this.#isOver) return
      this.#take(page * this.size, total, items)
      this.#loaded.add(page)
    } finally {
      this.#loading.delete(page)
    }
    this.#changed()
  }

  #take(offset: number, total: number, items: readonly T[]): void {
    this.total = total
    for (const [at, item] of items.entries()) this.#items.set(offset + at, item)
    for (const index of this.#items.keys()) if (index >= total) this.#items.delete(index)
  }

  #pageOf(index: number): number {
    return Math.max(0, Math.floor(index / this.size))
  }
}
