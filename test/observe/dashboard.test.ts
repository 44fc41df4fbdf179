import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import * as definitions from '../../src/observe/definitions.js'
import { DEFAULT_BUCKETS, type Definition } from '../../src/observe/definitions.js'

const root = join(import.meta.dirname, '../..')
const all = Object.values(definitions).filter(
  (each): each is Definition => typeof each === 'object' && 'prometheus' in each,
)
const LABELS = ['space', 'store', 'primitive', 'outcome', 'resource', 'le']

interface Panel {
  readonly id: number
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets: readonly { readonly expr: string }[]
}

const dashboard = JSON.parse(readFileSync(join(root, 'docs/grafana/holdfast.json'), 'utf8'))
const panels: Panel[] = dashboard.panels
const expressions = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))

/** With the suffixes that a histogram has. */
const exposed = all.flatMap(({ prometheus, type }) =>
  type === 'histogram' ? ['bucket', 'sum', 'count'].map((suffix) => `${prometheus}_${suffix}`) : [prometheus],
)

it('the dashboard names only metrics and labels that exist, and every metric', () => {
  const text = JSON.stringify(dashboard)
  const named = new Set(text.match(/\bholdfast_\w+/g))
  expect([...named].filter((name) => !exposed.includes(name))).toEqual([])
  const shown = all.filter(({ prometheus }) => [...named].some((name) => name.startsWith(prometheus)))
  expect(shown).toEqual(all)
  const labels = expressions.flatMap((expr) => [
    ...[...expr.matchAll(/(\w+)=~?"/g)].map(([, label]) => label),
    ...[...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', ')),
  ])
  expect(labels.filter((label) => !LABELS.includes(label ?? ''))).toEqual([])
})

it('the panels of the dashboard have ids of their own, and do not overlap', () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)} ${y + Math.floor(index / w)}`),
  )
  expect(new Set(cells).size).toBe(cells.length)
  expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true)
})

it('the page lists every metric by both names, with its type', () => {
  const page = readFileSync(join(root, 'docs/metrics.md'), 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('| `holdfast_'))
  expect(rows.map((row) => row.split(' | ').slice(0, 3).join(' '))).toEqual(
    all.map(({ prometheus, name, type }) => `| \`${prometheus}\` \`${name}\` ${type}`),
  )
  for (const name of page.match(/\bholdfast_\w+/g) ?? [])
    expect([...exposed, ...all.map(({ prometheus }) => prometheus)]).toContain(name)
})

it('the buckets go up', () => {
  expect([...DEFAULT_BUCKETS].sort((a, b) => a - b)).toEqual(DEFAULT_BUCKETS)
})
