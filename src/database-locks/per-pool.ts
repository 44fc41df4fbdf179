/** One object per pool and settings, so that all callers that share a pool share its locks. */
export class PerPool<T> {
  readonly #byPool = new WeakMap<object, Map<string, T>>()

  /** `create` also checks the pool: it throws if the pool cannot be used. */
  get(pool: object, settings: string, create: () => T): T {
    const known = this.#byPool.get(pool)?.get(settings)
    if (known !== undefined) return known
    const created = create()
    const ofPool = this.#byPool.get(pool) ?? new Map<string, T>()
    this.#byPool.set(pool, ofPool.set(settings, created))
    return created
  }
}
