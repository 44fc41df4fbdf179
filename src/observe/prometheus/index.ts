import { invalid } from '../../base/errors.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import { DEFAULT_BUCKETS } from '../definitions.js'
import type { NormalizeResource } from '../label-sets.js'
import { watch } from '../watch.js'
import { Counting, families } from './counts.js'
import { type MetricRegistry, register } from './registry.js'
import { exposition } from './text.js'

export type { NormalizeResource } from '../label-sets.js'
export type { MetricRegistry } from './registry.js'

/** The options of `prometheus`. */
export interface PrometheusOptions {
  /**
   * Gives the label under which a resource is counted, such as `order:*` for `order:42`. Names are
   * unbounded, and every label is a series that Prometheus keeps. Default: no resource label.
   */
  resource?: NormalizeResource | undefined
  /**
   * The bounds of the histograms in seconds, in ascending order. Default: 17 from `0.001` to
   * `3600`.
   */
  buckets?: readonly number[] | undefined
  /** A registry of `prom-client`, which then shows the metrics beside its own. Default: none. */
  registry?: MetricRegistry | undefined
}

const PROMETHEUS_OPTIONS: OptionNames<PrometheusOptions> = { resource: true, buckets: true, registry: true }

/** The metrics of all clients of this process. Made by `prometheus`. */
export interface PrometheusMetrics {
  /** The type of `text()`, for the header of the answer. */
  readonly contentType: string
  /** The present figures in the text format of Prometheus. */
  text(): string
  /** Ends the counting, and removes the metrics from the registry. */
  stop(): void
}

/**
 * Counts waits, holds, losses and errors of all Holdfast clients in this process, for Prometheus.
 * Call it before the first lock is taken: a request that is under way is not counted. See
 * `docs/metrics.md`.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { prometheus } from 'holdfast/prometheus'
 *
 * const metrics = prometheus({ resource: (name) => name.replace(/\d+/g, '*') })
 * const server = createServer((_request, response) => {
 *   response.setHeader('content-type', metrics.contentType).end(metrics.text())
 * })
 * server.listen(9464, '127.0.0.1', () => server.close())
 * ```
 */
export function prometheus(options: PrometheusOptions = {}): PrometheusMetrics {
  const {
    resource,
    buckets = DEFAULT_BUCKETS,
    registry,
  } = checkOptions(options, PROMETHEUS_OPTIONS, "{ resource: (name) => name.replace(/\\d+/g, '*') }")
  if (resource !== undefined && typeof resource !== 'function')
    throw invalid('resource must be a function that gives the label for a name')
  checkBuckets(buckets)
  const watched = watch(new Counting(buckets), resource)
  const all = families(watched)
  let unregister = (): void => {}
  try {
    if (registry) unregister = register(registry, all)
  } catch (error) {
    watched.stop()
    throw error
  }
  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    text: () => exposition(all),
    stop() {
      watched.stop()
      unregister()
    },
  }
}

function checkBuckets(buckets: readonly number[]): void {
  const isAscending =
    Array.isArray(buckets) &&
    buckets.length > 0 &&
    buckets.every((bound, index) => Number.isFinite(bound) && (index === 0 || bound > buckets[index - 1]))
  if (!isAscending)
    throw invalid('buckets must be numbers of seconds in ascending order, such as [0.01, 0.1, 1]')
}
