import { type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api'
import { invalid } from '../../base/errors.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import type { NormalizeResource } from '../label-sets.js'
import { watch } from '../watch.js'
import { MeterRecorder } from './metrics.js'
import { traceLocks } from './spans.js'

export type { NormalizeResource } from '../label-sets.js'

/** The options of `instrument`. */
export interface InstrumentOptions {
  /** Where the spans go; false: no spans. Default: the global provider. */
  tracerProvider?: TracerProvider | false | undefined
  /** Where the metrics go; false: no metrics. Default: the global provider. */
  meterProvider?: MeterProvider | false | undefined
  /**
   * Gives the attribute under which a resource is counted, such as `order:*` for `order:42`. Names
   * are unbounded, and every attribute is a series that the backend keeps. Default: no attribute.
   */
  resource?: NormalizeResource | undefined
}

const INSTRUMENT_OPTIONS: OptionNames<InstrumentOptions> = {
  tracerProvider: true,
  meterProvider: true,
  resource: true,
}

/** Ends what `instrument` has begun. */
export interface Instrumentation {
  /** No further spans and metrics. Spans that are open stay so, and are not exported. */
  stop(): void
}

/** The name of the instrumentation scope. */
const SCOPE = 'holdfast'

/**
 * Spans and metrics of all Holdfast clients in this process, through `@opentelemetry/api`. Call it
 * after your SDK has started, and before the first lock is taken. See `docs/metrics.md`.
 *
 * @example
 * ```ts
 * import { instrument } from 'holdfast/opentelemetry'
 *
 * const instrumentation = instrument({ resource: (name) => name.replace(/\d+/g, '*') })
 * process.once('beforeExit', () => instrumentation.stop())
 * ```
 */
export function instrument(options: InstrumentOptions = {}): Instrumentation {
  const { tracerProvider, meterProvider, resource } = checkOptions(
    options,
    INSTRUMENT_OPTIONS,
    "{ resource: (name) => name.replace(/\\d+/g, '*') }",
  )
  if (resource !== undefined && typeof resource !== 'function')
    throw invalid('resource must be a function that gives the attribute for a name')
  const stops: (() => void)[] = []
  if (tracerProvider !== false) stops.push(traceLocks((tracerProvider ?? trace).getTracer(SCOPE), resource))
  if (meterProvider !== false) {
    const meter = (meterProvider ?? metrics).getMeter(SCOPE)
    const recorder = new MeterRecorder(meter)
    stops.push(watch(recorder, resource).stop, () => recorder.stop())
  }
  return {
    stop() {
      for (const stop of stops) stop()
    },
  }
}
