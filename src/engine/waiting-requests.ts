import type { Request } from './request.js'

/** The requests that wait in this process, in order of arrival. Each is in at most one queue. */
export class WaitingRequests {
  #first: Request | null = null
  #last: Request | null = null
  #size = 0

  get size(): number {
    return this.#size
  }

  get first(): Request | null {
    return this.#first
  }

  get second(): Request | null {
    return this.#first?.after ?? null
  }

  push(request: Request): void {
    request.before = this.#last
    if (this.#last) this.#last.after = request
    else this.#first = request
    this.#last = request
    this.#size++
  }

  /** false: it is not in here. */
  remove(request: Request): boolean {
    const { before, after } = request
    if (!before && this.#first !== request) return false
    if (before) before.after = after
    else this.#first = after
    if (after) after.before = before
    else this.#last = before
    request.before = null
    request.after = null
    this.#size--
    return true
  }

  /** Takes all of them out. */
  takeAll(): Request[] {
    const all: Request[] = []
    for (let first = this.#first; first; first = this.#first) {
      this.remove(first)
      all.push(first)
    }
    return all
  }
}
