import { invalid } from '../../base/errors.js'

/** The options that describe a connection, which only a URL needs. */
interface UrlOptions {
  readonly driver?: unknown
  readonly connections?: unknown
  readonly tls?: unknown
}

export function refuseUrlOptions(options: UrlOptions): void {
  for (const name of ['driver', 'connections', 'tls'] as const)
    if (options[name] !== undefined)
      throw invalid(`${name} applies only to a URL; a pool of your own is used as it is`)
}

export function checkConnections(connections: unknown): number {
  if (!Number.isInteger(connections) || Number(connections) < 1)
    throw invalid(`connections is ${String(connections)}, but must be a whole number from 1 on`)
  return Number(connections)
}

/** One object per pool and settings, so that all users of one pool share it. */
export class PoolCache<T> {
  readonly #pools = new WeakMap<object, Map<string, T>>()

  /** `create` also checks the pool: it throws if the pool cannot be used. */
  get(pool: object, settings: readonly unknown[], create: () => T): T {
    const key = JSON.stringify(settings)
    const known = this.#pools.get(pool)?.get(key)
    if (known !== undefined) return known
    const created = create()
    const ofPool = this.#pools.get(pool) ?? new Map<string, T>()
    this.#pools.set(pool, ofPool.set(key, created))
    return created
  }
}
