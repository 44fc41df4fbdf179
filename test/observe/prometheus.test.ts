import { Registry } from 'prom-client'
import { expect, it, onTestFinished } from 'vitest'
import { memoryGuard } from '../../src/fence/index.js'
import { MOST_LABEL_SETS } from '../../src/observe/label-sets.js'
import { type PrometheusOptions, prometheus } from '../../src/observe/prometheus/index.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'

function counted(options: PrometheusOptions = {}) {
  const metrics = prometheus(options)
  onTestFinished(() => metrics.stop())
  return metrics
}

function open(space = 'shop'): Holdfast {
  const locks = new Holdfast(memory(), { space })
  onTestFinished(() => locks.close({ drain: 0 }))
  return locks
}

/** The values by name and labels, as Prometheus reads them. */
function parse(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ')
      return [line.slice(0, end), Number(line.slice(end + 1))]
    }),
  )
}

const MUTEX = 'space="shop",store="memory",primitive="mutex"'

it('counts waits and holds by outcome, in seconds', async () => {
  const metrics = counted({ buckets: [0.01, 1000] })
  const locks = open()
  const hold = await locks.mutex('order:1').acquire()
  expect(await locks.mutex('order:1').tryAcquire()).toBeNull()
  await expect(locks.mutex('order:1').acquire({ wait: 20 })).rejects.toMatchObject({
    code: 'ACQUIRE_TIMEOUT',
  })
  const waiting = locks.mutex('order:1').acquire()
  const during = parse(metrics.text())
  expect(during.get(`holdfast_held{${MUTEX}}`)).toBe(1)
  expect(during.get(`holdfast_waiting{${MUTEX}}`)).toBe(1)
  await hold.release()
  await (await waiting).release()
  const lost = await locks.mutex('b').acquire({ maxHold: 10 })
  await expect.poll(() => lost.isValid).toBe(false)
  const after = parse(metrics.text())
  expect(after.get(`holdfast_held{${MUTEX}}`)).toBe(0)
  expect(after.get(`holdfast_waiting{${MUTEX}}`)).toBe(0)
  expect(after.get(`holdfast_timeouts_total{${MUTEX}}`)).toBe(1)
  expect(after.get(`holdfast_lost_total{${MUTEX},outcome="expired"}`)).toBe(1)
  expect(after.get(`holdfast_wait_duration_seconds_count{${MUTEX},outcome="granted"}`)).toBe(3)
  expect(after.get(`holdfast_wait_duration_seconds_count{${MUTEX},outcome="refused"}`)).toBe(1)
  const late = `${MUTEX},outcome="timeout"`
  expect(after.get(`holdfast_wait_duration_seconds_bucket{${late},le="0.01"}`)).toBe(0)
  expect(after.get(`holdfast_wait_duration_seconds_bucket{${late},le="1000"}`)).toBe(1)
  expect(after.get(`holdfast_wait_duration_seconds_bucket{${late},le="+Inf"}`)).toBe(1)
  const sum = after.get(`holdfast_wait_duration_seconds_sum{${late}}`) ?? 0
  expect(sum).toBeGreaterThanOrEqual(0.02)
  expect(sum).toBeLessThan(20)
  expect(after.get(`holdfast_hold_duration_seconds_count{${MUTEX},outcome="released"}`)).toBe(2)
  expect(after.get(`holdfast_hold_duration_seconds_count{${MUTEX},outcome="expired"}`)).toBe(1)
})

it('counts stale fences and store errors', async () => {
  const metrics = counted({ resource: (name) => name.replace(/\d+/g, '*') })
  expect(parse(metrics.text()).get('holdfast_stale_fences_total')).toBe(0)
  const guard = memoryGuard()
  guard.check({ resource: 'order:1', fence: 2 })
  expect(() => guard.check({ resource: 'order:1', fence: 1 })).toThrow()
  const store = new InterceptedStore(memory())
  const locks = new Holdfast(store, { space: 'shop', storeTimeout: 50 })
  store.cut('claim')
  await expect(locks.mutex('a').acquire()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await locks.close({ drain: 0 })
  const figures = parse(metrics.text())
  expect(figures.get('holdfast_stale_fences_total{resource="order:*"}')).toBe(1)
  expect(figures.get('holdfast_store_errors_total{space="shop",store="memory"}')).toBeGreaterThan(0)
})

it('has the counters of failures before the first failure: Prometheus sees only increases', async () => {
  const metrics = counted({ resource: (name) => name.replace(/\d+/g, '*') })
  const locks = open()
  await locks.mutex('order:1').run(() => {})
  const counters = [...parse(metrics.text())].filter(([name]) => name.includes('_total'))
  const labels = `${MUTEX},resource="order:*"`
  expect(Object.fromEntries(counters)).toEqual({
    [`holdfast_timeouts_total{${labels}}`]: 0,
    [`holdfast_lost_total{${labels},outcome="lost"}`]: 0,
    [`holdfast_lost_total{${labels},outcome="expired"}`]: 0,
    [`holdfast_lost_total{${labels},outcome="closed"}`]: 0,
    [`holdfast_lost_total{${labels},outcome="forgotten"}`]: 0,
    holdfast_stale_fences_total: 0,
    'holdfast_stale_fences_total{resource="order:*"}': 0,
    'holdfast_store_errors_total{space="shop",store="memory"}': 0,
  })
})

it('names resources only as the user wants, and escapes them', async () => {
  // Half of a surrogate pair, as a normaliser that cuts names may leave it.
  const metrics = counted({ resource: (name) => name.replace(/\d+/g, '*').replace('END', '\ud800') })
  const locks = open()
  await locks.mutex('order:1').run(() => {})
  await locks.mutex('order:2').run(() => {})
  await locks.mutex('a "b" \\ c\nd END').run(() => {})
  const held = [...parse(metrics.text()).keys()].filter((name) => name.startsWith('holdfast_held'))
  expect(held).toEqual([
    `holdfast_held{${MUTEX},resource="order:*"}`,
    `holdfast_held{${MUTEX},resource="a \\"b\\" \\\\ c\\nd \ufffd"}`,
  ])
})

it('has a help and a type line for every metric', () => {
  const lines = counted().text().split('\n')
  const names = lines.filter((line) => line.startsWith('# TYPE')).map((line) => line.split(' ')[2])
  expect(names).toHaveLength(8)
  expect(lines.filter((line) => line.startsWith('# HELP')).map((line) => line.split(' ')[2])).toEqual(names)
})

it('bounds its memory when a normaliser, or the spaces, do not', async () => {
  const metrics = counted({ resource: (name) => name })
  const locks = open()
  for (let index = 0; index < MOST_LABEL_SETS + 50; index++) await locks.mutex(`order:${index}`).run(() => {})
  for (let index = 0; index < 50; index++) {
    const other = new Holdfast(memory(), { space: `tenant-${index}` })
    await other.mutex('x').run(() => {})
    await other.close()
  }
  const figures = parse(metrics.text())
  const waits = [...figures].filter(([name]) => name.startsWith('holdfast_wait_duration_seconds_count'))
  expect(waits).toHaveLength(MOST_LABEL_SETS + 1)
  const rest = 'space="other",store="memory",primitive="mutex",resource="other"'
  expect(figures.get(`holdfast_wait_duration_seconds_count{${rest},outcome="granted"}`)).toBe(100)
  expect(waits.reduce((sum, [, value]) => sum + value, 0)).toBe(MOST_LABEL_SETS + 100)
})

it('counts under other what a broken normaliser cannot name', async () => {
  const metrics = counted({
    resource: (name) => {
      if (name === 'a') throw new Error('broken')
      return undefined as unknown as string
    },
  })
  const locks = open()
  await locks.mutex('a').run(() => {})
  await locks.mutex('b').run(() => {})
  const figures = parse(metrics.text())
  expect(
    figures.get(`holdfast_wait_duration_seconds_count{${MUTEX},resource="other",outcome="granted"}`),
  ).toBe(2)
})

it('does not count down what began before it', async () => {
  const locks = open()
  const other = counted()
  const hold = await locks.mutex('a').acquire()
  const metrics = counted()
  await hold.release()
  expect(parse(other.text()).get(`holdfast_held{${MUTEX}}`)).toBe(0)
  expect([...parse(metrics.text()).keys()]).toEqual(['holdfast_stale_fences_total'])
})

it.each([Registry.PROMETHEUS_CONTENT_TYPE, Registry.OPENMETRICS_CONTENT_TYPE])(
  'shows the same in a registry of prom-client: %s',
  async (contentType) => {
    const registry = new Registry()
    registry.setContentType(contentType as typeof Registry.PROMETHEUS_CONTENT_TYPE)
    const metrics = counted({ registry, resource: (name) => name })
    const locks = open()
    const hold = await locks.mutex('a "b"').acquire()
    await expect(locks.mutex('a "b"').acquire({ wait: 10 })).rejects.toMatchObject({
      code: 'ACQUIRE_TIMEOUT',
    })
    expect(parse(await registry.metrics())).toEqual(parse(metrics.text()))
    await hold.release()
    expect(parse(await registry.metrics())).toEqual(parse(metrics.text()))
    expect((await registry.getMetricsAsJSON()).map(({ type }) => type)).toContain('histogram')
    metrics.stop()
    expect(registry.getMetricsAsArray()).toEqual([])
  },
)

it('refuses a registry that has its metrics, and leaves nothing behind', async () => {
  const registry = new Registry()
  const first = counted({ registry })
  expect(() => prometheus({ registry })).toThrow('already been registered')
  expect(registry.getMetricsAsArray()).toHaveLength(8)
  const locks = open()
  await locks.mutex('a').run(() => {})
  expect(parse(first.text()).get(`holdfast_wait_duration_seconds_count{${MUTEX},outcome="granted"}`)).toBe(1)
})

it('refuses options that it does not know', () => {
  expect(() => prometheus({ buckets: [] })).toThrow('ascending')
  expect(() => prometheus({ buckets: [1, 1] })).toThrow('ascending')
  expect(() => prometheus({ resource: 'a' as never })).toThrow('function')
  expect(() => prometheus({ prefix: 'a' } as never)).toThrow("no option 'prefix'")
})
