import type { AcquireOutcome, HoldEnd } from '../../base/events.js'
import {
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
import { Histogram } from './histogram.js'

/** The figures of one set of labels. */
export class Counts {
  readonly labels: Labels
  readonly waits = new Map<AcquireOutcome, Histogram>()
  readonly holds = new Map<HoldEnd, Histogram>()
  /** Holds that ended without a release. */
  readonly lost = new Map<HoldEnd, number>(LOSSES.map((outcome) => [outcome, 0]))
  waiting = 0
  held = 0
  timeouts = 0
  /** Stale fences, or store errors. */
  failures = 0

  constructor(labels: Labels) {
    this.labels = labels
  }
}

/** Keeps the figures in this process. */
export class Counting implements Recorder<Counts> {
  readonly #buckets: readonly number[]

  constructor(buckets: readonly number[]) {
    this.#buckets = buckets
  }

  newSeries(labels: Labels): Counts {
    return new Counts(labels)
  }

  waiting(counts: Counts, change: number): void {
    counts.waiting += change
  }

  waited(counts: Counts, outcome: AcquireOutcome, seconds: number): void {
    if (outcome === 'timeout') counts.timeouts++
    this.#histogramOf(counts.waits, outcome).observe(seconds)
  }

  held(counts: Counts, change: number): void {
    counts.held += change
  }

  wasHeld(counts: Counts, outcome: HoldEnd, seconds: number): void {
    if (isLoss(outcome)) counts.lost.set(outcome, (counts.lost.get(outcome) ?? 0) + 1)
    this.#histogramOf(counts.holds, outcome).observe(seconds)
  }

  staleFence(counts: Counts): void {
    counts.failures++
  }

  storeError(counts: Counts): void {
    counts.failures++
  }

  #histogramOf<Outcome>(histograms: Map<Outcome, Histogram>, outcome: Outcome): Histogram {
    const known = histograms.get(outcome)
    if (known) return known
    const histogram = new Histogram(this.#buckets)
    histograms.set(outcome, histogram)
    return histogram
  }
}

/** One line of a metric. */
export interface Sample {
  /** The metric's name, with `_bucket`, `_sum` or `_count` for a histogram. */
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A metric and its present values. */
export interface Family {
  readonly definition: Definition
  samples(): Sample[]
}

/** The metrics as they are when their samples are asked for. */
export function families({ locks, fences, stores }: WatchedSeries<Counts>): Family[] {
  const of = (
    definition: Definition,
    from: { values(): Iterable<Counts> },
    samplesOf: (counts: Counts, name: string) => Sample[],
  ): Family => ({
    definition,
    samples: () => Array.from(from.values()).flatMap((counts) => samplesOf(counts, definition.prometheus)),
  })
  const one = (figureOf: (counts: Counts) => number) => (counts: Counts, name: string) => [
    { name, labels: { ...counts.labels }, value: figureOf(counts) },
  ]
  return [
    of(WAIT, locks, (counts, name) => histogramSamples(name, counts.labels, counts.waits)),
    of(HOLD, locks, (counts, name) => histogramSamples(name, counts.labels, counts.holds)),
    of(
      WAITING,
      locks,
      one(({ waiting }) => waiting),
    ),
    of(
      HELD,
      locks,
      one(({ held }) => held),
    ),
    of(
      TIMEOUTS,
      locks,
      one(({ timeouts }) => timeouts),
    ),
    of(LOST, locks, ({ labels, lost }, name) =>
      Array.from(lost, ([outcome, value]) => ({ name, labels: { ...labels, outcome }, value })),
    ),
    of(
      STALE_FENCES,
      fences,
      one(({ failures }) => failures),
    ),
    of(
      STORE_ERRORS,
      stores,
      one(({ failures }) => failures),
    ),
  ]
}

function histogramSamples(
  name: string,
  labels: Labels,
  histograms: ReadonlyMap<string, Histogram>,
): Sample[] {
  return Array.from(histograms).flatMap(([outcome, histogram]) => {
    const own = { ...labels, outcome }
    const buckets = histogram.cumulative()
    return [
      ...buckets.map(({ le, count }) => ({
        name: `${name}_bucket`,
        labels: { ...own, le: le === Infinity ? '+Inf' : String(le) },
        value: count,
      })),
      { name: `${name}_sum`, labels: own, value: histogram.sum },
      { name: `${name}_count`, labels: own, value: buckets.at(-1)?.count ?? 0 },
    ]
  })
}
