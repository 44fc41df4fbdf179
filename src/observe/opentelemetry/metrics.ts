import type {
  Attributes,
  Counter,
  Histogram,
  Meter,
  ObservableResult,
  ObservableUpDownCounter,
} from '@opentelemetry/api'
import { systemEnv } from '../../base/env.js'
import type { AcquireOutcome, HoldEnd } from '../../base/events.js'
import {
  DEFAULT_BUCKETS,
  type Definition,
  HELD,
  HOLD,
  isLoss,
  LOSSES,
  LOST,
  STALE_FENCES,
  STORE_ERRORS,
  TIMEOUTS,
  WAIT,
  WAITING,
} from '../definitions.js'
import type { Labels } from '../label-sets.js'
import type { Recorder, WatchedSeries } from '../watch.js'

/** The attributes of one set of labels, made once: there are several records for each lock. */
export interface AttributeSet {
  readonly attributes: Attributes
  readonly byOutcome: Map<string, Attributes>
  waiting: number
  held: number
}

/** A duration that the SDK was not told of yet. */
interface Measured {
  readonly histogram: Histogram
  readonly seconds: number
  readonly attributes: Attributes
}

/**
 * Passes what happens on to the instruments of a meter. The SDK takes microseconds for each record.
 * So what changes with every lock and is read seldom is kept here, and asked for by the SDK; and
 * durations are recorded when the lock's own work is done, mostly while the store is waited for.
 */
export class MeterRecorder implements Recorder<AttributeSet> {
  readonly #wait: Histogram
  readonly #hold: Histogram
  readonly #waiting: ObservableUpDownCounter
  readonly #held: ObservableUpDownCounter
  /** Those of locks. */
  readonly #gauged = new Set<AttributeSet>()
  readonly #timeouts: Counter
  readonly #lost: Counter
  readonly #staleFences: Counter
  readonly #storeErrors: Counter
  #measured: Measured[] = []

  constructor(meter: Meter) {
    const histogram = ({ name, unit, help: description }: Definition): Histogram =>
      meter.createHistogram(name, {
        unit,
        description,
        advice: { explicitBucketBoundaries: [...DEFAULT_BUCKETS] },
      })
    const counter = ({ name, unit, help: description }: Definition): Counter =>
      meter.createCounter(name, { unit, description })
    const gauge = ({ name, unit, help: description }: Definition): ObservableUpDownCounter =>
      meter.createObservableUpDownCounter(name, { unit, description })
    this.#wait = histogram(WAIT)
    this.#hold = histogram(HOLD)
    this.#waiting = gauge(WAITING)
    this.#held = gauge(HELD)
    this.#timeouts = counter(TIMEOUTS)
    this.#lost = counter(LOST)
    this.#staleFences = counter(STALE_FENCES)
    this.#storeErrors = counter(STORE_ERRORS)
    this.#waiting.addCallback(this.#observeWaiting)
    this.#held.addCallback(this.#observeHeld)
  }

  stop(): void {
    this.#flush()
    this.#waiting.removeCallback(this.#observeWaiting)
    this.#held.removeCallback(this.#observeHeld)
  }

  #measure(histogram: Histogram, seconds: number, attributes: Attributes): void {
    if (this.#measured.push({ histogram, seconds, attributes }) === 1)
      systemEnv.timer(1, this.#flush, { keepAlive: false })
  }

  readonly #flush = (): void => {
    const measured = this.#measured
    this.#measured = []
    for (const { histogram, seconds, attributes } of measured) histogram.record(seconds, attributes)
  }

  /** The SDK asks before it reads the histograms. */
  readonly #observeWaiting = (result: ObservableResult): void => {
    this.#flush()
    for (const { waiting, attributes } of this.#gauged) result.observe(waiting, attributes)
  }

  readonly #observeHeld = (result: ObservableResult): void => {
    for (const { held, attributes } of this.#gauged) result.observe(held, attributes)
  }

  newSeries(labels: Labels, kind: keyof WatchedSeries<AttributeSet>): AttributeSet {
    const set = { attributes: { ...labels }, byOutcome: new Map(), waiting: 0, held: 0 }
    if (kind === 'fences') this.#staleFences.add(0, set.attributes)
    if (kind === 'stores') this.#storeErrors.add(0, set.attributes)
    if (kind === 'locks') {
      this.#timeouts.add(0, set.attributes)
      for (const outcome of LOSSES) this.#lost.add(0, withOutcome(set, outcome))
    }
    return set
  }

  waiting(set: AttributeSet, change: number): void {
    this.#gauged.add(set)
    set.waiting += change
  }

  waited(set: AttributeSet, outcome: AcquireOutcome, seconds: number): void {
    if (outcome === 'timeout') this.#timeouts.add(1, set.attributes)
    this.#measure(this.#wait, seconds, withOutcome(set, outcome))
  }

  held(set: AttributeSet, change: number): void {
    set.held += change
  }

  wasHeld(set: AttributeSet, outcome: HoldEnd, seconds: number): void {
    const attributes = withOutcome(set, outcome)
    if (isLoss(outcome)) this.#lost.add(1, attributes)
    this.#measure(this.#hold, seconds, attributes)
  }

  staleFence({ attributes }: AttributeSet): void {
    this.#staleFences.add(1, attributes)
  }

  storeError({ attributes }: AttributeSet): void {
    this.#storeErrors.add(1, attributes)
  }
}

function withOutcome({ attributes, byOutcome }: AttributeSet, outcome: string): Attributes {
  const known = byOutcome.get(outcome)
  if (known) return known
  const made = { ...attributes, outcome }
  byOutcome.set(outcome, made)
  return made
}
