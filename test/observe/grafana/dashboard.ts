import { readFileSync } from 'node:fs'
import type { PrometheusServer, Series } from '../../servers/prometheus.js'

interface Target {
  readonly refId: string
  readonly expr: string
  readonly legendFormat: string
  /** Only the value at the end of the range. */
  readonly instant?: boolean
}

export interface Panel {
  readonly id: number
  readonly title: string
  readonly type: 'stat' | 'timeseries' | 'heatmap' | 'bargauge'
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets: readonly Target[]
  readonly fieldConfig: { readonly overrides: readonly { readonly matcher: { readonly options: string } }[] }
}

interface Variable {
  readonly name: string
  readonly label: string
  readonly type: string
  readonly definition?: string
  readonly allValue?: string
}

/** What the user of a dashboard sees: a range of time, cut into steps. */
export interface View {
  /** The end of the range, in seconds. */
  readonly to: number
  readonly rangeSeconds: number
  readonly stepSeconds: number
  /** As the data source says. */
  readonly scrapeSeconds: number
  /** The chosen values of variables. Default: all. */
  readonly chosen?: Readonly<Record<string, readonly string[]>>
}

/** A series with the name that the legend shows. */
export interface NamedSeries extends Series {
  readonly name: string
}

const dashboard = JSON.parse(
  readFileSync(new URL('../../../docs/grafana/holdfast.json', import.meta.url), 'utf8'),
)
export const title: string = dashboard.title
export const panels: readonly Panel[] = dashboard.panels
export const variables: readonly Variable[] = dashboard.templating.list.filter(
  ({ type }: Variable) => type === 'query',
)

/** An expression as Grafana sends it to Prometheus. */
export function interpolate(expr: string, view: View): string {
  const { rangeSeconds, stepSeconds, scrapeSeconds, chosen } = view
  const rateSeconds = Math.max(stepSeconds + scrapeSeconds, 4 * scrapeSeconds)
  const values = new Map([
    ['__rate_interval', `${Math.round(rateSeconds * 1000)}ms`],
    ['__range', `${Math.round(rangeSeconds)}s`],
    ...variables.map(({ name, allValue = '.*' }) => [name, regexpOf(chosen?.[name], allValue)] as const),
  ])
  return expr.replace(/\$(\w+)/g, (found, name) => values.get(name) ?? found)
}

function regexpOf(chosen: readonly string[] | undefined, allValue: string): string {
  if (chosen === undefined) return allValue
  // Escaped twice: for the regular expression, and for the string that it stands in.
  const escaped = chosen.map((value) => value.replace(/[\\^$*+?.()|[\]{}]/g, '\\\\$&'))
  return escaped.length === 1 ? (escaped[0] as string) : `(${escaped.join('|')})`
}

/** The series of a panel, in the order of its targets. */
export async function seriesOf(
  prometheus: PrometheusServer,
  panel: Panel,
  view: View,
): Promise<NamedSeries[]> {
  const range = { start: view.to - view.rangeSeconds, end: view.to, step: view.stepSeconds }
  const found = await Promise.all(
    panel.targets.map(async ({ expr, legendFormat, instant }) => {
      const query = interpolate(expr, view)
      const series = instant
        ? await prometheus.query(query, view.to)
        : await prometheus.queryRange(query, range)
      return series.map((each) => ({ ...each, name: nameOf(legendFormat, each.labels) }))
    }),
  )
  return found.flat()
}

function nameOf(legendFormat: string, labels: Series['labels']): string {
  return legendFormat.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => labels[label] ?? '').trim()
}
