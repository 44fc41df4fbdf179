import type { ApiContext } from './api.js'
import { kindOf } from './lines.js'
import type { Poller } from './poller.js'
import type { Route } from './router.js'
import type { ResourceKind } from './shapes.js'

const KINDS: readonly ResourceKind[] = ['lock', 'semaphore', 'election', 'once', 'barrier']

interface Metric {
  readonly name: string
  readonly type: 'gauge' | 'counter'
  readonly help: string
  /** With their labels: `{kind="lock"}`, or ''. */
  readonly values: readonly (readonly [labels: string, value: number])[]
}

/** `GET metrics`: the lines of the first space, for Prometheus. No name becomes a label. */
export function metricsRoutes({ options, spaces, streams }: ApiContext): Route[] {
  return [
    {
      method: 'GET',
      path: 'metrics',
      access: 'users',
      answer: async () => {
        const { poller } = spaces.home
        const isUp = await poller.fresh().then(
          () => true,
          () => false,
        )
        const text = [...storeMetrics(poller, isUp), ...serverMetrics(poller, streams.count)].map(asText)
        return new Response(text.join('') + (options.metrics?.text() ?? ''), {
          headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
        })
      },
    },
  ]
}

/** A store that is down has no figures: old ones would look like present ones. */
function storeMetrics(poller: Poller, isUp: boolean): Metric[] {
  const up: Metric = gauge('holdfast_store_up', 'Whether the store answers', [['', isUp ? 1 : 0]])
  if (!isUp) return [up]
  const counts = countsOf(poller)
  const byKind = (of: keyof Counts) =>
    KINDS.map((kind) => [`{kind="${kind}"}`, counts.get(kind)?.[of] ?? 0] as const)
  const { waitingSinceMs } = poller.totals
  const longestMs = waitingSinceMs === null ? 0 : Math.max(0, poller.asOfMs - waitingSinceMs)
  return [
    up,
    gauge('holdfast_line_resources', 'Resources that are held or waited for', byKind('resources')),
    gauge('holdfast_line_holds', 'Holds in all lines', byKind('holds')),
    gauge('holdfast_line_waiters', 'Waiters in all lines', byKind('waiters')),
    gauge('holdfast_line_longest_wait_seconds', 'How long the longest waiter waits', [
      ['', longestMs / 1000],
    ]),
  ]
}

function serverMetrics(poller: Poller, streams: number): Metric[] {
  return [
    gauge('holdfast_server_streams', 'Open event streams', [['', streams]]),
    gauge('holdfast_server_poll_cpu_seconds', 'CPU time of the last look at the store', [
      ['', poller.costMs / 1000],
    ]),
    {
      name: 'holdfast_server_polls_total',
      type: 'counter',
      help: 'Looks at the store',
      values: [['', poller.looks]],
    },
  ]
}

interface Counts {
  resources: number
  holds: number
  waiters: number
}

function countsOf({ lines }: Poller): Map<ResourceKind, Counts> {
  const counts = new Map<ResourceKind, Counts>()
  for (const line of lines.values()) {
    const kind = kindOf(line)
    const { resources, holds, waiters } = counts.get(kind) ?? { resources: 0, holds: 0, waiters: 0 }
    counts.set(kind, {
      resources: resources + 1,
      holds: holds + line.holders,
      waiters: waiters + line.claims.length - line.holders,
    })
  }
  return counts
}

function gauge(name: string, help: string, values: Metric['values']): Metric {
  return { name, type: 'gauge', help, values }
}

function asText({ name, type, help, values }: Metric): string {
  const lines = values.map(([labels, value]) => `${name}${labels} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}
