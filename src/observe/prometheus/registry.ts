import type { Family } from './counts.js'

/** The part of a registry of `prom-client` that is used. */
export interface MetricRegistry {
  /** Adds a metric; throws if there is another one of that name. */
  // biome-ignore lint/suspicious/noExplicitAny: its parameter is a union of prom-client's classes
  registerMetric(metric: any): void
  /** Removes a metric. */
  removeSingleMetric(name: string): void
}

/** Adds the metrics to a registry. The returned function removes them. */
export function register(registry: MetricRegistry, all: readonly Family[]): () => void {
  const names: string[] = []
  const remove = (): void => {
    for (const name of names) registry.removeSingleMetric(name)
  }
  try {
    for (const family of all) {
      registry.registerMetric(new RegisteredMetric(family))
      names.push(family.definition.prometheus)
    }
  } catch (error) {
    remove()
    throw error
  }
  return remove
}

/** What a registry of `prom-client` asks a metric for. */
class RegisteredMetric {
  /** A registry in the OpenMetrics format takes `_total` off, and adds it to each sample. */
  name: string
  readonly help: string
  readonly type: string
  /** For a cluster: figures of several processes are added. */
  readonly aggregator = 'sum'
  readonly #family: Family

  constructor(family: Family) {
    this.name = family.definition.prometheus
    this.help = family.definition.help
    this.type = family.definition.type
    this.#family = family
  }

  async get(): Promise<object> {
    const { name, help, type, aggregator } = this
    const values = this.#family.samples().map(({ name: sampleName, labels, value }) => {
      return type === 'histogram' ? { metricName: sampleName, labels, value } : { labels, value }
    })
    return { name, help, type, aggregator, values }
  }

  /** Counters only grow: what `resetMetrics()` is for, tests, can use an instance of their own. */
  reset(): void {}
}
