// Runs in the browser: draws the panels of the dashboard with uPlot, the library that Grafana draws
// with. Grid, titles, units, colours and legends are those of the panels.
/* global uPlot */

const CELL = { width: 46, height: 29, gap: 8 }
/** The classic palette of Grafana, and its colours by name. */
const PALETTE = ['#73bf69', '#f2cc0c', '#8ab8ff', '#ff780a', '#f2495c', '#5794f2', '#b877d9']
const COLORS = {
  green: '#73bf69',
  yellow: '#fade2a',
  orange: '#ff9830',
  red: '#f2495c',
  blue: '#5794f2',
  purple: '#b877d9',
}
const ORANGES = [
  '#7f2704',
  '#a63603',
  '#d94801',
  '#f16913',
  '#fd8d3c',
  '#fdae6b',
  '#fdd0a2',
  '#fee6ce',
  '#fff5eb',
]
const TEXT = 'rgba(204, 204, 220, 0.75)'
const LINES = 'rgba(204, 204, 220, 0.09)'
const FONT = '11px "DejaVu Sans", sans-serif'

const UNITS = {
  s: (value) => (value === 0 ? '0 s' : value < 1 ? `${round(value * 1000)} ms` : timeOf(value)),
  ops: (value) => `${round(value)} ops/s`,
  reqps: (value) => `${round(value)} req/s`,
}

function timeOf(seconds) {
  if (seconds < 60) return `${round(seconds)} s`
  return seconds < 3600 ? `${round(seconds / 60)} min` : `${round(seconds / 3600)} hour`
}

function round(value) {
  return String(Number(value.toPrecision(3)))
}

function formatOf({ unit, decimals }) {
  return UNITS[unit] ?? ((value) => (decimals === undefined ? round(value) : value.toFixed(decimals)))
}

function element(parent, className, text = '') {
  const made = document.createElement('div')
  made.className = className
  made.textContent = text
  parent.append(made)
  return made
}

/** The values at each step; null where there is none, which leaves a gap. */
function onGrid(times, points) {
  const values = new Map(points.map(([time, value]) => [Math.round(time * 1000), value]))
  return times.map((time) => {
    const value = values.get(Math.round(time * 1000))
    return Number.isFinite(value) ? value : null
  })
}

function alpha(color, opacity) {
  return (
    color +
    Math.round(opacity * 255)
      .toString(16)
      .padStart(2, '0')
  )
}

function clock(seconds) {
  return new Date(seconds * 1000).toISOString().slice(11, 19)
}

const timeAxis = {
  stroke: TEXT,
  font: FONT,
  size: 24,
  gap: 4,
  space: 90,
  grid: { stroke: LINES, width: 1 },
  ticks: { show: false },
  incrs: [5, 10, 15, 20, 30, 60],
  values: (_plot, times) => times.map(clock),
}

function valueAxis(format, size) {
  return {
    stroke: TEXT,
    font: FONT,
    size,
    gap: 4,
    space: 32,
    grid: { stroke: LINES, width: 1 },
    ticks: { show: false },
    values: (_plot, values) => values.map(format),
  }
}

function timeseries(body, { fieldConfig, series }, times) {
  const { defaults } = fieldConfig
  const legend = element(body.parentElement, 'legend')
  const drawn = series.map(({ name }, index) => {
    const stroke = overridden(fieldConfig, name) ?? PALETTE[index % PALETTE.length]
    const item = element(legend, 'item', name)
    item.style.setProperty('--color', stroke)
    const fill = alpha(stroke, (defaults.custom?.fillOpacity ?? 0) / 100)
    return { label: name, stroke, fill, width: 1.5, points: { show: false } }
  })
  const data = [times, ...series.map(({ points }) => onGrid(times, points))]
  const top = Math.max(...data.slice(1).flat().filter(Number.isFinite))
  plot(body, data, {
    scales: { x: { time: false }, y: { range: [defaults.min ?? 0, top > 0 ? top * 1.08 : 1] } },
    axes: [timeAxis, valueAxis(formatOf(defaults), defaults.unit ? 66 : 40)],
    series: [{}, ...drawn],
  })
}

/** The colour that the panel has for a series of that name. */
function overridden({ overrides }, name) {
  const override = overrides.find(({ matcher }) => matcher.options === name)
  const color = override?.properties.find(({ id }) => id === 'color')?.value.fixedColor
  return COLORS[color]
}

function plot(body, data, options) {
  const { width, height } = body.getBoundingClientRect()
  const common = { legend: { show: false }, cursor: { show: false }, padding: [8, 8, 0, 0] }
  return new uPlot({ width, height, ...common, ...options }, data, body)
}

function stat(body, { fieldConfig: { defaults }, series }, times) {
  const points = series[0]?.points ?? []
  const last = points.at(-1)?.[1]
  const color = colorOf(defaults, last)
  const value = element(body, 'value', last === undefined ? 'No data' : formatOf(defaults)(last))
  value.style.color = color
  const data = [times, onGrid(times, points)]
  const top = Math.max(1, ...data[1].filter(Number.isFinite))
  const { width, height } = body.getBoundingClientRect()
  new uPlot(
    {
      width,
      height: height * 0.45,
      legend: { show: false },
      cursor: { show: false },
      padding: [2, 0, 0, 0],
      scales: { x: { time: false }, y: { range: [0, top * 1.05] } },
      axes: [{ show: false }, { show: false }],
      series: [{}, { stroke: color, fill: alpha(color, 0.2), width: 1, points: { show: false } }],
    },
    data,
    element(body, 'spark'),
  )
}

function colorOf({ color, thresholds }, value = 0) {
  if (color?.mode === 'fixed') return COLORS[color.fixedColor]
  const reached = thresholds.steps.filter((step) => step.value === null || value >= step.value)
  return COLORS[reached.at(-1).color]
}

/** The counts of each bucket alone: those of Prometheus include the smaller buckets. */
function bucketsOf(series, times) {
  const bounded = series
    .map(({ name, points }) => ({
      bound: Number(name.replace('+Inf', 'Infinity')),
      counts: onGrid(times, points),
    }))
    .sort((a, b) => a.bound - b.bound)
  return bounded.map(({ bound, counts }, index) => ({
    bound,
    counts: counts.map((count, at) => Math.max(0, (count ?? 0) - (bounded[index - 1]?.counts[at] ?? 0))),
  }))
}

function shade(share) {
  const place = Math.min(1, share) * (ORANGES.length - 1)
  const [low, high] = [Math.floor(place), Math.ceil(place)]
  const parts = (hex) => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16))
  const [from, to] = [parts(ORANGES[low]), parts(ORANGES[high])]
  return `rgb(${from.map((part, at) => Math.round(part + (to[at] - part) * (place - low))).join(',')})`
}

function heatmap(body, { options, series }, times) {
  const buckets = bucketsOf(series, times)
  const most = Math.max(1e-9, ...buckets.flatMap(({ counts }) => counts))
  const format = formatOf(options.yAxis)
  const labelled = buckets.map((_, row) => row).filter((row) => row % 2 === 0)
  const paint = (chart) => {
    const { ctx } = chart
    const step = times[1] - times[0]
    for (const [row, { counts }] of buckets.entries())
      for (const [at, count] of counts.entries()) {
        if (count < 1e-9) continue
        const [left, right] = [times[at] - step, times[at]].map((time) => chart.valToPos(time, 'x', true))
        const [bottom, top] = [row, row + 1].map((place) => chart.valToPos(place, 'y', true))
        ctx.fillStyle = shade(count / most)
        ctx.fillRect(left + 0.5, top + 0.5, right - left - 1, bottom - top - 1)
      }
  }
  plot(body, [times, times.map(() => null)], {
    scales: { x: { time: false }, y: { range: [0, buckets.length] } },
    axes: [
      timeAxis,
      {
        ...valueAxis(() => '', 56),
        splits: () => labelled.map((row) => row + 1),
        values: (_plot, places) =>
          places.map((place) => {
            const { bound } = buckets[place - 1]
            return bound === Infinity ? '+Inf' : format(bound)
          }),
      },
    ],
    series: [{}, { show: false }],
    hooks: { draw: [paint] },
  })
  const legend = element(body.parentElement, 'legend')
  element(legend, 'bound', '0')
  element(legend, 'scale').style.background = `linear-gradient(to right, ${ORANGES.join(',')})`
  element(legend, 'bound', round(most))
}

function bargauge(body, { fieldConfig: { defaults }, series }) {
  const values = series.map(({ points }) => points.at(-1)?.[1] ?? 0)
  const most = Math.max(...values)
  for (const [index, { name }] of series.entries()) {
    const row = element(body, 'bar-row')
    element(row, 'bar-name', name)
    const bar = element(element(row, 'bar-space'), 'bar')
    bar.style.width = `${(values[index] / most) * 100}%`
    bar.style.backgroundSize = `${(most / values[index]) * 100}% 100%`
    element(row, 'bar-value', formatOf(defaults)(values[index]))
  }
}

const DRAW = { stat, timeseries, heatmap, bargauge }

/** Draws all panels into the page. */
globalThis.drawDashboard = ({ title, variables, from, to, step, panels }) => {
  const times = Array.from({ length: Math.round((to - from) / step) + 1 }, (_, index) => from + index * step)
  const header = element(document.body, 'header')
  element(header, 'title', title)
  for (const { label, value } of variables) {
    const chosen = element(header, 'variable')
    element(chosen, 'label', label)
    element(chosen, 'chosen', value)
  }
  element(header, 'range', `Last ${round((to - from) / 60)} minutes`)
  const grid = element(document.body, 'grid')
  let bottom = 0
  for (const panel of panels) {
    const { x, y, w, h } = panel.gridPos
    const box = element(grid, `panel ${panel.type}`)
    Object.assign(box.style, {
      left: `${x * CELL.width}px`,
      top: `${y * CELL.height}px`,
      width: `${w * CELL.width - CELL.gap}px`,
      height: `${h * CELL.height - CELL.gap}px`,
    })
    bottom = Math.max(bottom, (y + h) * CELL.height)
    element(box, 'heading', panel.title)
    const body = element(box, 'body')
    // The legend takes its place before the chart is measured.
    if (panel.type === 'timeseries' || panel.type === 'heatmap') box.classList.add('with-legend')
    DRAW[panel.type](body, panel, times)
  }
  grid.style.height = `${bottom}px`
}
