import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { memoryGuard } from '../../src/fence/index.js'
import { prometheus as countForPrometheus } from '../../src/observe/prometheus/index.js'
import { on } from '../../src/observe/watch.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { describeOn } from '../servers/availability.js'
import { type PrometheusServer, startPrometheus } from '../servers/prometheus.js'
import { interpolate, type Panel, panels, seriesOf, type View, variables } from './grafana/dashboard.js'

const SCRAPE_MS = 200
/** `rate` and `increase` extrapolate, the less the more samples there are. */
const LEAST_SAMPLES = 12
const TIMEOUT_MS = 30

const root = new URL('../../', import.meta.url)
const alerts = [
  ...readFileSync(new URL('docs/metrics.md', root), 'utf8').matchAll(/^\| (.*) \| `(.*\[.*)` \|$/gm),
]

describeOn('prometheus', 'the Grafana dashboard in a real Prometheus', () => {
  const ends: (() => unknown)[] = []
  let prometheus: PrometheusServer
  let view: View
  let storeErrors = 0

  beforeAll(async () => {
    const metrics = countForPrometheus({ resource: (name) => name.replace(/\d+/g, '*') })
    ends.push(() => metrics.stop())
    ends.push(on('holdfast:store', () => storeErrors++))
    const target = createServer((_request, response) => {
      response.setHeader('content-type', metrics.contentType).end(metrics.text())
    })
    await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve))
    ends.push(
      () => target.close(),
      () => target.closeAllConnections(),
    )
    const address = `127.0.0.1:${(target.address() as AddressInfo).port}`
    view = await busyDay(async () => {
      prometheus = await startPrometheus({ targets: [address], scrapeMs: SCRAPE_MS })
      ends.push(() => prometheus.stop())
    })
  })

  afterAll(async () => {
    for (const end of ends.reverse()) await end()
  })

  /**
   * What the panels are to show: some requests, and one failure of each kind. Everything that is not
   * a failure happens once before the scraping begins, so that its series exist.
   */
  async function busyDay(beginScraping: () => Promise<void>): Promise<View> {
    const store = new InterceptedStore(memory())
    const locks = new Holdfast(store, { space: 'shop' })
    const impatient = new Holdfast(store, { space: 'shop', storeTimeout: 50 })
    const others = new Holdfast(memory(), { space: 'back.office' })
    for (const client of [locks, impatient, others]) ends.push(() => client.close({ drain: 0 }))
    const lasting = [
      await locks.mutex('order:9').acquire(),
      await locks.readWrite('catalogue').read.acquire(),
      await others.mutex('report').acquire(),
    ]
    // It waits until the client is closed.
    locks
      .mutex('order:9')
      .acquire()
      .catch(() => {})
    const doomed = await locks.mutex('stock:1').acquire()
    await round(locks)
    await beginScraping()
    await scraped('sum(holdfast_held)', 4)

    await round(locks)
    await locks.breakHold('stock:1')
    await eventually('the loss of a broken hold', () => !doomed.isValid)
    const guard = memoryGuard()
    guard.check({ resource: 'stock:1', fence: 2 })
    expect(() => guard.check({ resource: 'stock:1', fence: 1 })).toThrow()
    store.cut('claim')
    await expect(impatient.mutex('order:3').acquire()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    store.heal()
    await scraped('sum(holdfast_wait_duration_seconds_count)', 19)
    await scraped('sum(holdfast_lost_total)', 1)
    const samples = () => prometheus.value('min(count_over_time(holdfast_lost_total[5m]))')
    await eventually('enough samples', async () => ((await samples()) ?? 0) > LEAST_SAMPLES)
    expect(lasting.every(({ isValid }) => isValid)).toBe(true)
    return { to: await lastSample(), rangeSeconds: 3600, stepSeconds: 300, scrapeSeconds: SCRAPE_MS / 1000 }
  }

  /** A view that ends there has nothing to extrapolate at its end. */
  async function lastSample(): Promise<number> {
    let time: number | null = null
    await eventually('a sample', async () => {
      // None after a scrape that got no answer in time.
      time = await prometheus.value('max(timestamp(holdfast_held))')
      return time !== null
    })
    return time ?? 0
  }

  /** Granted: 5 requests. Refused and timed out: one each. */
  async function round(locks: Holdfast): Promise<void> {
    const mutex = locks.mutex('order:1')
    const hold = await mutex.acquire()
    expect(await mutex.tryAcquire()).toBeNull()
    await expect(mutex.acquire({ wait: TIMEOUT_MS })).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT' })
    const next = mutex.acquire()
    await hold.release()
    await (await next).release()
    await locks.readWrite('prices').read.run(() => {})
    await locks.readWrite('prices').write.run(() => {})
    await locks.semaphore('gpu', 2).run(() => {})
  }

  async function scraped(query: string, value: number): Promise<void> {
    await eventually(`${query} being ${value}`, async () => (await prometheus.value(query)) === value)
  }

  /** The last value of each series, by its name in the legend. */
  async function lastValues(title: string, type: Panel['type'], of: View = view) {
    const panel = panels.find((each) => each.title === title && each.type === type)
    if (!panel) throw new Error(`no panel ${title}`)
    const series = await seriesOf(prometheus, panel, of)
    return Object.fromEntries(series.map(({ name, points }) => [name, points.at(-1)?.[1] ?? Number.NaN]))
  }

  /** Per second in the step of the view, as numbers of events. */
  function events(rates: Record<string, number>): Record<string, number> {
    return whole(rates, view.stepSeconds + view.scrapeSeconds)
  }

  /** Prometheus extrapolates by a few percent, and the panels show no decimals. */
  function whole(values: Record<string, number>, factor = 1): Record<string, number> {
    return Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, Math.round(value * factor)]),
    )
  }

  it('shows something in every panel, without a variable that is left', async () => {
    for (const panel of panels) {
      for (const { expr } of panel.targets) expect(interpolate(expr, view)).not.toContain('$')
      const series = await seriesOf(prometheus, panel, view)
      expect(series.length, panel.title).toBeGreaterThan(0)
      for (const { points, name } of series)
        expect(points.at(-1)?.[0], `${panel.title}: ${name}`).toBe(view.to)
      const names = series.map(({ name }) => name)
      expect(new Set(names).size, panel.title).toBe(series.length)
      // Those that have a colour of their own.
      for (const { matcher } of panel.fieldConfig.overrides) expect(names).toContain(matcher.options)
    }
  })

  it.each([
    ['Held', 3],
    ['Waiting', 1],
    ['Lost', 1],
    ['Timeouts', 1],
    ['Stale fences refused', 1],
  ])('%s is %i', async (title, value) => {
    expect(whole(await lastValues(title, 'stat'))).toEqual({ '': value })
  })

  it('counts the store errors', async () => {
    expect(storeErrors).toBeGreaterThan(0)
    expect(whole(await lastValues('Store errors', 'stat'))).toEqual({ '': storeErrors })
    expect(events(await lastValues('Store errors', 'timeseries'))).toEqual({ memory: storeErrors })
  })

  it('shows requests by outcome, and losses', async () => {
    expect(events(await lastValues('Requests by outcome', 'timeseries'))).toMatchObject({
      granted: 5,
      refused: 1,
      timeout: 1,
    })
    const losses = events(await lastValues('Lost holds and timeouts', 'timeseries'))
    expect(losses).toEqual({
      'hold lost': 1,
      'hold expired': 0,
      'hold closed': 0,
      'hold forgotten': 0,
      timeouts: 1,
    })
    expect(await lastValues('Held and waiting', 'timeseries')).toEqual({ held: 3, waiting: 1 })
  })

  it('shows how long waits and holds took', async () => {
    const buckets = Object.entries(await lastValues('Waits', 'heatmap')).map(([le, count]) => ({
      le: Number(le.replace('+Inf', 'Infinity')),
      count,
    }))
    buckets.sort((a, b) => a.le - b.le)
    expect(buckets.map(({ count }) => count)).toEqual(buckets.map(({ count }) => count).sort((a, b) => a - b))
    expect(buckets.at(-1)?.le).toBe(Infinity)
    expect(Math.round(buckets.at(-1)?.count ?? 0)).toBe(5)
    for (const title of ['Wait: median, 95 %, 99 %', 'Hold: median, 95 %, 99 %']) {
      const quantiles = await lastValues(title, 'timeseries')
      const { median = 0, '95 %': p95 = 0, '99 %': p99 = 0 } = quantiles
      expect(Object.keys(quantiles)).toHaveLength(3)
      expect(median).toBeGreaterThan(0)
      expect(p95).toBeGreaterThanOrEqual(median)
      expect(p99).toBeGreaterThanOrEqual(p95)
      // The one that timed out, and the hold that it waited for. The bucket begins at 25 ms.
      expect(p99, title).toBeGreaterThan(0.025)
    }
  })

  it('names the most contended resource first', async () => {
    const contended = await lastValues('Most contended', 'bargauge')
    expect(Object.keys(contended)[0]).toBe('mutex order:*')
    expect(contended['mutex order:*']).toBeGreaterThan(TIMEOUT_MS / 1000 / view.rangeSeconds)
    expect(Object.keys(contended)).toEqual(
      expect.arrayContaining(['semaphore gpu', 'read prices', 'write prices']),
    )
  })

  it('filters by the variables, which list what there is', async () => {
    const lists = await Promise.all(
      variables.map(async ({ name, definition = '' }) => {
        const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(definition) ?? []
        return [name, await prometheus.labelValues(label, selector)]
      }),
    )
    expect(Object.fromEntries(lists)).toEqual({ space: ['back.office', 'shop'], store: ['memory'] })
    const held = (space: string[]) => lastValues('Held', 'stat', { ...view, chosen: { space } })
    expect(await held(['shop'])).toEqual({ '': 2 })
    expect(await held(['back.office'])).toEqual({ '': 1 })
    expect(await held(['back.office', 'shop'])).toEqual({ '': 3 })
    expect(await held(['back+office'])).toEqual({})
  })

  it('fires the alerts of the page', async () => {
    expect(alerts).toHaveLength(6)
    const firing: string[] = []
    for (const [, alert = '', expr = ''] of alerts)
      if ((await prometheus.query(expr.replaceAll('\\|', '|'), view.to)).length > 0) firing.push(alert)
    expect(firing).toEqual([
      'a hold was lost while its work ran',
      'a late writer was refused',
      'the store fails',
    ])
  })
})
