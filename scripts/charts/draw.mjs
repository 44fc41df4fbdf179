// The charts of docs/pictures, as functions of the figures in scripts/charts/runs.
import { chart, curve, HEIGHT, line, rect, text, thousands, WIDTH } from './svg.mjs'

const LEFT = 46
const RIGHT = WIDTH - 20

export const CHARTS = {
  'flash-sale': flashSale,
  'paused-worker': pausedWorker,
  'hot-lock': hotLock,
}

/** The stock that the sellers wrote, sale by sale. */
function flashSale({ stock, buyers, processes, withoutLock, withLock }) {
  const [top, bottom] = [78, HEIGHT - 56]
  const most = Math.ceil(withoutLock.length / 100) * 100
  const x = (sale) => LEFT + ((RIGHT - LEFT) * sale) / most
  const y = (left) => bottom - ((bottom - top) * left) / stock
  const path = (stocks) => [[x(0), y(stock)], ...thin(stocks).map(([sale, left]) => [x(sale), y(left)])]
  const levels = [0, stock / 2, stock]
  return chart(
    {
      title: `Flash sale: ${stock} items in stock`,
      subtitle: `${thousands(buyers)} buyers, ${processes} processes`,
      about: `Without a lock ${withoutLock.length} items are sold, with Holdfast ${withLock.length}, of a stock of ${stock}.`,
    },
    [
      rect(x(stock), top, RIGHT - x(stock), bottom - top, 'bad', ' opacity=".1"'),
      text(RIGHT - 10, top + 20, 'sold, but not in stock', 'small bad', 'end'),
      levels.map((level) => [
        line(LEFT, y(level), RIGHT, y(level), level === 0 ? 'axis' : 'grid'),
        text(LEFT - 8, y(level) + 5, level, 'small muted', 'end'),
      ]),
      [0, stock, ...steps(most)].map((sale) => text(x(sale), bottom + 20, sale, 'small muted', 'middle')),
      text(RIGHT, bottom + 42, 'items sold', 'small muted', 'end'),
      text(LEFT, bottom + 42, '↑ stock left in the file', 'small muted'),
      curve(path(withoutLock), 'bad'),
      curve(path(withLock), 'good'),
      text(x(most * 0.46), y(stock * 0.72), `without a lock: ${withoutLock.length} sold`, 'bad strong'),
      text(x(stock) + 10, y(stock * 0.09), `with Holdfast: ${withLock.length} sold`, 'good strong'),
    ],
  )
}

/** Numbers for an axis to `most`, apart from what is near the stock. */
function steps(most) {
  const step = most > 500 ? 200 : 100
  return Array.from({ length: Math.floor(most / step) }, (_, index) => (index + 1) * step).filter(
    (n) => n > 150,
  )
}

/** Only where the line bends, as [sale, left]. */
function thin(stocks) {
  const points = stocks.map((left, index) => [index + 1, left])
  return points.filter(([sale, left], index) => {
    const [before, after] = [points[index - 1], points[index + 1]]
    if (!before || !after) return true
    return (left - before[1]) * (after[0] - sale) !== (after[1] - left) * (sale - before[0])
  })
}

/** What two workers do, and what the resource keeps, without and with a check of fences. */
function pausedWorker({ leaseMs, withoutFence, withFence }) {
  const longest = Math.max(withoutFence.moments.aWrote, withFence.moments.aWrote)
  const scale = { end: longest * 1.12, leaseMs }
  return chart(
    {
      title: 'A worker pauses for longer than its lease',
      subtitle: `A is stopped with SIGSTOP; its lease is ${leaseMs / 1000} s`,
      about: `A worker is paused and writes too late. Without a fence its write is ${outcomeOf(withoutFence)}, with a fence it is ${outcomeOf(withFence)}.`,
    },
    [
      '<defs><pattern id="pause" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V7" stroke="var(--gray)" stroke-width="5"/></pattern></defs>',
      panel(withoutFence, 70, 'Without a fence', scale),
      panel(withFence, 202, 'With a fence', scale),
      timeAxis(HEIGHT - 14, scale, withFence),
    ],
  )
}

function outcomeOf({ isStaleAccepted }) {
  return isStaleAccepted ? 'accepted' : 'refused'
}

function panel(run, top, title, scale) {
  const { moments, isStaleAccepted } = run
  const x = xOf(scale)
  const [rowA, rowB, rowOrder] = [top + 30, top + 60, top + 94]
  const verdict = isStaleAccepted ? 'the late write destroys B’s' : 'the late write is refused'
  const colour = isStaleAccepted ? 'bad' : 'good'
  return [
    text(20, top + 14, title, 'strong'),
    text(RIGHT, top + 14, verdict, `${colour} strong`, 'end'),
    line(x(scale.leaseMs), rowA - 6, x(scale.leaseMs), rowOrder + 24, 'axis', ' stroke-dasharray="3 4"'),
    text(20, rowA + 15, 'A', 'strong'),
    rect(x(0), rowA, x(moments.aStopped) - x(0), 20, 'good'),
    rect(
      x(moments.aStopped),
      rowA,
      x(moments.aWoke) - x(moments.aStopped),
      20,
      '',
      ' fill="url(#pause)" opacity=".55"',
    ),
    label((x(moments.aStopped) + x(scale.leaseMs)) / 2, rowA + 15, 'paused', 56),
    write(x(moments.aWrote), rowA + 10, isStaleAccepted ? 'bad' : 'gray', isStaleAccepted),
    text(20, rowB + 15, 'B', 'strong'),
    rect(x(moments.bGranted), rowB, x(moments.bEnded) - x(moments.bGranted), 20, 'good'),
    text(x(moments.bGranted) - 8, rowB + 15, 'gets the lock', 'small', 'end'),
    write(x(moments.bWrote), rowB + 10, 'good', true),
    text(20, rowOrder + 15, 'data', 'small muted'),
    rect(x(0), rowOrder + 8, x(moments.bWrote) - x(0), 4, 'gray', ' opacity=".5"'),
    rect(
      x(moments.bWrote),
      rowOrder,
      (isStaleAccepted ? x(moments.aWrote) : RIGHT) - x(moments.bWrote),
      20,
      'good',
    ),
    isStaleAccepted ? rect(x(moments.aWrote), rowOrder, RIGHT - x(moments.aWrote), 20, 'bad') : [],
    text(RIGHT - 6, rowOrder + 15, isStaleAccepted ? 'A’s' : 'B’s', 'small on strong', 'end'),
  ]
}

/** A word on a spot of the surface, so that a pattern below does not cross it. */
function label(x, y, content, width) {
  return [rect(x - width / 2, y - 14, width, 18, 'on', ' rx="3"'), text(x, y, content, 'small', 'middle')]
}

/** A write: filled if it was accepted, a cross if it was refused. */
function write(x, y, colour, isAccepted) {
  const mark = isAccepted
    ? `<path d="M${x - 4} ${y}l3 3.5l5.5 -7" fill="none" stroke="var(--surface)" stroke-width="2"/>`
    : `<path d="M${x - 4} ${y - 4}l8 8m0 -8l-8 8" stroke="var(--surface)" stroke-width="2"/>`
  return [
    `<circle class="${colour}" cx="${x}" cy="${y}" r="10" stroke="var(--surface)" stroke-width="2"/>`,
    mark,
  ]
}

function xOf({ end }) {
  return (ms) => Math.round(LEFT + 14 + ((RIGHT - LEFT - 14) * ms) / end)
}

function timeAxis(y, scale, { moments }) {
  const x = xOf(scale)
  const at = (ms, content, anchor) => text(x(ms), y, `${ms / 1000} s${content}`, 'small muted', anchor)
  const wokeMs = Math.round(moments.aWoke / 100) * 100
  return [at(0, '', 'start'), at(scale.leaseMs, ': lease ends', 'middle'), at(wokeMs, ': A wakes', 'middle')]
}

/** Grants per second of one lock on Redis, of Holdfast and its peers. */
function hotLock({ tables }) {
  const { rows } = tables.find(({ title }) => title.includes('4 × 16'))
  const names = { 'holdfast cohort': 'Holdfast', 'holdfast strict': "Holdfast, 'strict'" }
  const bars = Object.entries(rows).sort(([, one], [, other]) => other - one)
  const best = Math.max(...bars.filter(([name]) => !name.startsWith('holdfast')).map(([, figure]) => figure))
  const [start, top, step] = [164, 82, 51]
  const longest = bars[0][1]
  const x = (figure) => ((RIGHT - start - 120) * figure) / longest
  return chart(
    {
      title: 'One hot lock on Redis',
      subtitle: '64 tasks in 4 processes: grants per second (× the best peer)',
      about: bars
        .map(([name, figure]) => `${names[name] ?? name}: ${thousands(figure)} grants per second`)
        .join('; '),
    },
    bars.map(([name, figure], index) => {
      const y = top + index * step
      const isOurs = name.startsWith('holdfast')
      const ratio = isOurs ? ` (${Number((figure / best).toPrecision(2))} ×)` : ''
      return [
        text(start - 10, y + 17, names[name] ?? name, isOurs ? 'strong' : '', 'end'),
        rect(start, y, Math.max(2, x(figure)), 24, isOurs ? 'good' : 'gray', ' rx="2"'),
        text(
          start + Math.max(2, x(figure)) + 8,
          y + 17,
          `${thousands(figure)}${ratio}`,
          isOurs ? 'strong' : '',
        ),
      ]
    }),
  )
}
