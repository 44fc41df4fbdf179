import { invalid } from '../../base/errors.js'

/** The options that describe a connection, which only a URL needs. */
interface UrlOptions {
  readonly driver?: unknown
  readonly connections?: unknown
  readonly tls?: unknown
}

export function refuseUrlOptions(options: UrlOptions): void {
  for (const name of ['driver', 'connections', 'tls'] as const)
    if (options[name] !== undefined) throw invalid(`${name} is for a URL; a pool of yours is used as it is`)
}

export function checkConnections(connections: unknown): number {
  if (!Number.isInteger(connections) || Number(connections) < 1)
    throw invalid(`connections is ${String(connections)}, but must be a whole number from 1 on`)
  return Number(connections)
}

/** The backends of each pool by their settings, so that all store values of one pool share them. */
export class PoolCache<Backend> {
  readonly #pools = new WeakMap<object, Map<string, Backend>>()

  of(pool: object, settings: readonly unknown[], make: () => Backend): Backend {
    const known = this.#pools.get(pool) ?? new Map<string, Backend>()
    this.#pools.set(pool, known)
    const key = JSON.stringify(settings)
    const backend = known.get(key) ?? make()
    known.set(key, backend)
    return backend
  }
}
