import type { TimelineEntry } from '../shapes.js'

/** A stretch of a lane, as fractions of the time shown. */
export type Bar = { from: number; to: number; entry: TimelineEntry; isOpen: boolean }

/** The bars of one holder or waiter. */
export type Lane = { id: string; first: TimelineEntry; bars: Bar[] }

/** How much time a timeline shows, and where its marks stand, as milliseconds before its end. */
export type Span = { ms: number; words: string; marks: readonly { ms: number; text: string }[] }

const SPANS: readonly Span[] = [
  span(30_000, '30 seconds', 10_000, 3, (count) => `−${count * 10} s`),
  span(60_000, 'minute', 15_000, 4, (count) => `−${count * 15} s`),
  span(120_000, '2 minutes', 30_000, 4, (count) => `−${count * 30} s`),
  span(300_000, '5 minutes', 60_000, 5, (count) => `−${count} m`),
]

/** The shortest span in which everything has room. */
export function spanOf(timeline: readonly TimelineEntry[], endMs: number): Span {
  const first = Math.min(...timeline.map((entry) => Date.parse(entry.from)))
  const longest = SPANS.at(-1) as Span
  return SPANS.find(({ ms }) => first >= endMs - ms) ?? longest
}

/** The mark at the very left would stand outside. */
function span(
  ms: number,
  words: string,
  stepMs: number,
  steps: number,
  text: (count: number) => string,
): Span {
  const marks = Array.from({ length: steps - 1 }, (_, index) => ({
    ms: (index + 1) * stepMs,
    text: text(index + 1),
  }))
  return { ms, words, marks }
}

/**
 * One lane for each claim, the present holders first, then the latest. Bars that end before the
 * time shown are left out.
 */
export function lanesOf(timeline: readonly TimelineEntry[], startMs: number, endMs: number): Lane[] {
  const lanes = new Map<string, Lane>()
  const part = (ms: number): number => Math.min(1, Math.max(0, (ms - startMs) / (endMs - startMs)))
  for (const entry of timeline) {
    const toMs = entry.to === null ? endMs : Date.parse(entry.to)
    const fromMs = Date.parse(entry.from)
    if (!(toMs >= startMs && fromMs <= endMs)) continue
    const bar = { from: part(fromMs), to: part(toMs), entry, isOpen: entry.to === null }
    const lane = lanes.get(entry.id)
    if (lane) lane.bars.push(bar)
    else lanes.set(entry.id, { id: entry.id, first: entry, bars: [bar] })
  }
  return [...lanes.values()].sort((a, b) => rank(a) - rank(b) || startOf(a) - startOf(b))
}

/** Holders, then waiters, in the order of the line; then the past, the latest first. */
function rank({ bars }: Lane): number {
  const open = bars.find((bar) => bar.isOpen)
  return open === undefined ? 2 : open.entry.state === 'held' ? 0 : 1
}

function startOf(lane: Lane): number {
  const first = Math.min(...lane.bars.map((bar) => bar.from))
  return rank(lane) === 2 ? -Math.max(...lane.bars.map((bar) => bar.to)) : first
}
