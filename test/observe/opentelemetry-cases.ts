import { type Context, context, type HrTime, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Store } from '../../src/contract/store.js'
import { memoryGuard } from '../../src/fence/index.js'
import { type InstrumentOptions, instrument } from '../../src/observe/opentelemetry/index.js'
import { Holdfast } from '../../src/primitives/holdfast.js'

let spaces = 0

class Telemetry {
  readonly spans = new InMemorySpanExporter()
  readonly tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.spans)] })
  readonly #metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  readonly meterProvider = new MeterProvider({
    readers: [
      new PeriodicExportingMetricReader({ exporter: this.#metrics, exportIntervalMillis: 3_600_000 }),
    ],
  })

  constructor(options: InstrumentOptions = {}) {
    const { tracerProvider, meterProvider } = this
    const instrumentation = instrument({ tracerProvider, meterProvider, ...options })
    onTestFinished(async () => {
      instrumentation.stop()
      await meterProvider.shutdown()
    })
  }

  named(name: string): ReadableSpan[] {
    return this.spans.getFinishedSpans().filter((span) => span.name === name)
  }

  /** The present value of a metric by its attributes; the number of values for a histogram. */
  async figures(name: string): Promise<Record<string, number>> {
    this.#metrics.reset()
    await this.meterProvider.forceFlush()
    const all = this.#metrics
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
    const points = all
      .filter(({ descriptor }) => descriptor.name === name)
      .flatMap(({ dataPoints }) => dataPoints as DataPoint<number | Histogram>[])
    return Object.fromEntries(
      points.map(({ attributes, value }) => {
        const { space: _space, store: _store, ...own } = attributes
        return [Object.values(own).join(' '), typeof value === 'number' ? value : value.count]
      }),
    )
  }
}

/** What every store has to give. */
export function describeTelemetry(title: string, store: () => Store): void {
  const open = (space = `otel-${process.pid}-${spaces++}`): Holdfast => {
    const locks = new Holdfast(store(), { space })
    onTestFinished(() => locks.close({ drain: 0 }))
    return locks
  }

  describe(`OpenTelemetry on ${title}`, () => {
    const manager = new AsyncLocalStorageContextManager().enable()
    beforeAll(() => void context.setGlobalContextManager(manager))
    afterAll(() => context.disable())

    it('has a span for the request, and one for the hold that links to it', async () => {
      const telemetry = new Telemetry({ resource: (name) => name.replace(/\d+/g, '*') })
      const tracer = telemetry.tracerProvider.getTracer('test')
      const locks = open()
      const request = tracer.startSpan('request')
      const within: Context = trace.setSpan(context.active(), request)
      const first = await locks.mutex('order:1').acquire()
      const running = context.with(within, () =>
        locks.mutex('order:1').run(
          async () => {
            tracer.startSpan('before').end()
            await new Promise((resolve) => setImmediate(resolve))
            await locks.mutex('order:1').run(async () => tracer.startSpan('nested').end())
            tracer.startSpan('after').end()
          },
          { label: 'checkout' },
        ),
      )
      await first.release()
      await running
      expect(trace.getSpan(context.active())).toBeUndefined()
      const [, acquire] = telemetry.named('holdfast.acquire')
      const [, hold] = telemetry.named('holdfast.hold')
      expect(acquire?.parentSpanContext?.spanId).toBe(request.spanContext().spanId)
      expect(hold?.parentSpanContext?.spanId).toBe(request.spanContext().spanId)
      expect(hold?.links.map((link) => link.context.spanId)).toEqual([acquire?.spanContext().spanId])
      for (const inside of ['before', 'nested', 'after'])
        expect(telemetry.named(inside)[0]?.parentSpanContext?.spanId).toBe(hold?.spanContext().spanId)
      expect(acquire?.attributes).toMatchObject({
        'holdfast.store': expect.any(String),
        'holdfast.primitive': 'mutex',
        'holdfast.resource': 'order:*',
        'holdfast.label': 'checkout',
        'holdfast.outcome': 'granted',
        'holdfast.queued': expect.any(Boolean),
      })
      expect(hold?.attributes).toMatchObject({
        'holdfast.outcome': 'released',
        'holdfast.fence': acquire?.attributes['holdfast.fence'],
      })
      expect(hold?.status.code).toBe(SpanStatusCode.UNSET)
      expect(toMs(hold?.startTime)).toBeGreaterThanOrEqual(toMs(acquire?.startTime))
    })

    it('marks requests and holds that ended badly, without the name of the resource', async () => {
      const telemetry = new Telemetry()
      const space = `otel-${process.pid}-${spaces++}`
      const [locks, other] = [open(space), open(space)]
      const hold = await other.mutex('secret').acquire()
      await expect(locks.mutex('secret').acquire({ wait: 10 })).rejects.toMatchObject({
        code: 'ACQUIRE_TIMEOUT',
      })
      expect(await locks.mutex('secret').tryAcquire()).toBeNull()
      await hold.release()
      const capped = await other.mutex('secret').acquire({ maxHold: 20 })
      await vi.waitFor(() => expect(capped.signal.aborted).toBe(true), { timeout: 20_000 })
      const ended = [...telemetry.named('holdfast.acquire'), ...telemetry.named('holdfast.hold')].map(
        ({ attributes, status }) => ({ outcome: attributes['holdfast.outcome'], ...status }),
      )
      expect(ended).toEqual([
        { outcome: 'granted', code: SpanStatusCode.UNSET },
        { outcome: 'timeout', code: SpanStatusCode.ERROR, message: 'ACQUIRE_TIMEOUT' },
        { outcome: 'refused', code: SpanStatusCode.UNSET },
        { outcome: 'granted', code: SpanStatusCode.UNSET },
        { outcome: 'released', code: SpanStatusCode.UNSET },
        { outcome: 'expired', code: SpanStatusCode.ERROR, message: 'HOLD_LOST' },
      ])
      const told = telemetry.spans
        .getFinishedSpans()
        .map(({ attributes, status }) => ({ attributes, status }))
      expect(JSON.stringify(told)).not.toContain('secret')
    })

    it('has the metrics of every primitive and outcome', async () => {
      const telemetry = new Telemetry()
      const locks = open()
      const hold = await locks.mutex('a').acquire()
      const waiting = locks.mutex('a').acquire()
      expect(await telemetry.figures('holdfast.held')).toEqual({ mutex: 1 })
      expect(await telemetry.figures('holdfast.waiting')).toEqual({ mutex: 1 })
      await expect(locks.mutex('a').acquire({ wait: 10 })).rejects.toThrow()
      expect(await locks.mutex('a').tryAcquire()).toBeNull()
      await hold.release()
      await (await waiting).release()
      await locks.readWrite('rw').read.run(() => {})
      await locks.semaphore('s', 3).run(() => {}, { permits: 2 })
      await locks.all(['x', 'y']).run(() => {})
      await locks.once('o', { atLeast: '1m', atMost: '1h' }, () => {})
      await (await locks.election('e').campaign()).resign()
      const capped = await locks.mutex('b').acquire({ maxHold: 20 })
      await vi.waitFor(() => expect(capped.signal.aborted).toBe(true), { timeout: 20_000 })
      const guard = memoryGuard()
      guard.check({ resource: 'a', fence: 2 })
      expect(() => guard.check({ resource: 'a', fence: 1 })).toThrow()
      expect(await telemetry.figures('holdfast.wait.duration')).toEqual({
        'mutex granted': 3,
        'mutex timeout': 1,
        'mutex refused': 1,
        'read granted': 1,
        'semaphore granted': 1,
        'all granted': 2,
        'once granted': 1,
        'election granted': 1,
      })
      expect(await telemetry.figures('holdfast.hold.duration')).toEqual({
        'mutex released': 2,
        'mutex expired': 1,
        'read released': 1,
        'semaphore released': 1,
        'all released': 2,
        'once released': 1,
        'election released': 1,
      })
      const none = { mutex: 0, read: 0, semaphore: 0, all: 0, once: 0, election: 0 }
      expect(await telemetry.figures('holdfast.held')).toEqual(none)
      expect(await telemetry.figures('holdfast.waiting')).toEqual(none)
      expect(await telemetry.figures('holdfast.timeouts')).toEqual({ ...none, mutex: 1 })
      const losses = Object.entries(await telemetry.figures('holdfast.lost'))
      expect(losses.filter(([, count]) => count > 0)).toEqual([['mutex expired', 1]])
      expect(await telemetry.figures('holdfast.stale_fences')).toEqual({ '': 1 })
    })

    it('has the counters of failures before the first failure', async () => {
      const telemetry = new Telemetry()
      expect(await telemetry.figures('holdfast.stale_fences')).toEqual({ '': 0 })
      await open()
        .mutex('a')
        .run(() => {})
      expect(await telemetry.figures('holdfast.timeouts')).toEqual({ mutex: 0 })
      expect(await telemetry.figures('holdfast.lost')).toEqual({
        'mutex lost': 0,
        'mutex expired': 0,
        'mutex closed': 0,
        'mutex forgotten': 0,
      })
      expect(await telemetry.figures('holdfast.store.errors')).toEqual({ '': 0 })
    })

    it('gives no spans or no metrics if not wanted, and nothing after its end', async () => {
      const spansOnly = new Telemetry({ meterProvider: false })
      const metricsOnly = new Telemetry({ tracerProvider: false })
      const { tracerProvider, meterProvider } = metricsOnly
      const ended = instrument({ tracerProvider, meterProvider })
      ended.stop()
      await open()
        .mutex('a')
        .run(() => {})
      expect(spansOnly.spans.getFinishedSpans()).toHaveLength(2)
      expect(await spansOnly.figures('holdfast.held')).toEqual({})
      expect(metricsOnly.spans.getFinishedSpans()).toEqual([])
      expect(await metricsOnly.figures('holdfast.wait.duration')).toEqual({ 'mutex granted': 1 })
    })
  })
}

function toMs([seconds, nanoseconds]: HrTime = [0, 0]): number {
  return seconds * 1000 + nanoseconds / 1e6
}
