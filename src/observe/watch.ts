import { type Channel, channel } from 'node:diagnostics_channel'
import type {
  AcquireContext,
  AcquireOutcome,
  HoldContext,
  HoldEnd,
  StaleFence,
  StoreFailure,
} from '../base/events.js'
import { LabelSets, type Labels, type NormalizeResource } from './label-sets.js'

/** Counts what happens, or passes it on. `Series` is what it keeps for a set of labels. */
export interface Recorder<Series> {
  newSeries(labels: Labels, kind: keyof WatchedSeries<Series>): Series
  /** `change` is 1 or -1. */
  waiting(series: Series, change: number): void
  waited(series: Series, outcome: AcquireOutcome, seconds: number): void
  /** `change` is 1 or -1. */
  held(series: Series, change: number): void
  wasHeld(series: Series, outcome: HoldEnd, seconds: number): void
  staleFence(series: Series): void
  storeError(series: Series): void
}

/** The series of each kind of event. */
export interface WatchedSeries<Series> {
  /** By space, store, primitive, and resource if there is a normaliser. */
  readonly locks: LabelSets<Series>
  /** By resource, if there is a normaliser. */
  readonly fences: LabelSets<Series>
  /** By space and store. */
  readonly stores: LabelSets<Series>
}

export interface Watch<Series> extends WatchedSeries<Series> {
  stop(): void
}

/** Subscribes to the channels until `stop()`. */
export function watch<Series>(
  recorder: Recorder<Series>,
  normalize: NormalizeResource | undefined,
): Watch<Series> {
  const fences = new LabelSets(normalize, (labels) => recorder.newSeries(labels, 'fences'))
  const stores = new LabelSets(normalize, (labels) => recorder.newSeries(labels, 'stores'))
  // Prometheus sees an increase only if it has seen the series before. So the counters of failures
  // begin with 0, and not with the first failure.
  const locks = new LabelSets(normalize, (labels) => {
    fences.prepare({ resource: labels.resource })
    stores.prepare({ space: labels.space, store: labels.store })
    return recorder.newSeries(labels, 'locks')
  })
  fences.prepare({})
  // Only what was seen to begin is counted down: a hold may be older than this subscription. It is
  // kept in the context: a WeakMap takes a tenth of the time of a lock.
  const begun = Symbol('series')
  type Watched = { [begun]?: Series }
  const begin = (context: AcquireContext | HoldContext, known?: Series): Series => {
    const series = known ?? locks.of(context, context.resource)
    ;(context as Watched)[begun] = series
    return series
  }
  const seriesOf = (context: AcquireContext | HoldContext): Series | undefined => (context as Watched)[begun]

  const stops = [
    on('tracing:holdfast:acquire:start', (context: AcquireContext) => recorder.waiting(begin(context), 1)),
    on('tracing:holdfast:acquire:asyncEnd', (context: AcquireContext) => {
      const series = seriesOf(context)
      if (series === undefined) return
      recorder.waiting(series, -1)
      recorder.waited(series, context.outcome ?? 'failed', (context.waitMs ?? 0) / 1000)
    }),
    on('tracing:holdfast:hold:start', (context: HoldContext) =>
      recorder.held(begin(context, seriesOf(context.acquire)), 1),
    ),
    on('tracing:holdfast:hold:asyncStart', (context: HoldContext) => {
      const series = seriesOf(context)
      if (series !== undefined) recorder.held(series, -1)
    }),
    on('tracing:holdfast:hold:asyncEnd', (context: HoldContext) => {
      const series = seriesOf(context)
      if (series === undefined) return
      recorder.wasHeld(series, context.outcome ?? 'lost', (context.holdMs ?? 0) / 1000)
    }),
    on('holdfast:fence', ({ resource }: StaleFence) => recorder.staleFence(fences.of({}, resource ?? null))),
    on('holdfast:store', ({ space, store }: StoreFailure) =>
      recorder.storeError(stores.of({ space, store }, null)),
    ),
  ]
  const stop = (): void => {
    for (const end of stops) end()
  }
  return { locks, fences, stores, stop }
}

/** The returned function ends it. */
export function on<Message>(name: string, listener: (message: Message) => void): () => void {
  // Kept by the returned function: a channel that nobody refers to can be collected with its
  // subscribers.
  const subscribed: Channel = channel(name)
  const receive = (message: unknown): void => listener(message as Message)
  subscribed.subscribe(receive)
  return () => void subscribed.unsubscribe(receive)
}
