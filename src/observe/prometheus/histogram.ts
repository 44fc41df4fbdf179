/** Counts values by buckets, as Prometheus wants them. */
export class Histogram {
  sum = 0
  readonly #bounds: readonly number[]
  /** One more than there are bounds: the last is for all that is greater. */
  readonly #counts: number[]

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  observe(value: number): void {
    this.sum += value
    let index = 0
    while (index < this.#bounds.length && value > (this.#bounds[index] as number)) index++
    this.#counts[index] = (this.#counts[index] as number) + 1
  }

  /** How many values are not greater than each bound; the last bound is Infinity. */
  cumulative(): { le: number; count: number }[] {
    let count = 0
    return this.#counts.map((each, index) => {
      count += each
      return { le: this.#bounds[index] ?? Infinity, count }
    })
  }
}
