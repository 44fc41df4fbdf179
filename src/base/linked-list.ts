/** An element of a list, which is in one list at most. */
export interface Linked<T> {
  before: T | null
  after: T | null
}

/**
 * A list whose elements know their neighbours. Where elements come and go all the time, this is
 * quicker than a Set: V8 keeps what was in a Set, once that is old, until the next full garbage
 * collection.
 */
export class LinkedList<T extends Linked<T>> {
  #first: T | null = null
  #last: T | null = null
  #size = 0

  get size(): number {
    return this.#size
  }

  get first(): T | null {
    return this.#first
  }

  get last(): T | null {
    return this.#last
  }

  push(element: T): void {
    element.before = this.#last
    if (this.#last) this.#last.after = element
    else this.#first = element
    this.#last = element
    this.#size++
  }

  /** false: it is not in here. */
  remove(element: T): boolean {
    const { before, after } = element
    if (!before && this.#first !== element) return false
    if (before) before.after = after
    else this.#first = after
    if (after) after.before = before
    else this.#last = before
    element.before = null
    element.after = null
    this.#size--
    return true
  }

  /** Takes all of them out. */
  takeAll(): T[] {
    const all: T[] = []
    for (let first = this.#first; first; first = this.#first) {
      this.remove(first)
      all.push(first)
    }
    return all
  }
}
