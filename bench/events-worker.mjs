// One contestant of the suite events, in a thread of its own: subscriptions count for a thread.
// Runs pairs for as long as it is told, and gives pairs per second.
import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { Redis } from 'ioredis'
import { serial, together } from './slices.mjs'

const TASKS = 64
const WARM_UP_PAIRS = 64 * 100
const { folder, subscriber, url, way } = workerData
const load = async (path) => (await import(pathToFileURL(`${folder}/dist/cjs/${path}/index.js`).href)).default

const SUBSCRIBERS = {
  none: () => {},
  metrics: async () =>
    (await load('observe/opentelemetry')).instrument({ meterProvider, tracerProvider: false }),
  spans: async () => (await load('observe/opentelemetry')).instrument({ meterProvider, tracerProvider }),
  prometheus: async () => (await load('observe/prometheus')).prometheus(),
}
const reader = new PeriodicExportingMetricReader({
  exporter: new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE),
  exportIntervalMillis: 3_600_000,
})
const meterProvider = new MeterProvider({ readers: [reader] })
const nowhere = {
  export: (_spans, done) => done({ code: 0 }),
  shutdown: async () => {},
  forceFlush: async () => {},
}
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(nowhere)] })

const { Holdfast } = await load('.')
const client = url === undefined ? undefined : new Redis(url)
const store = client ? (await load('stores/redis')).redis(client) : (await load('stores/memory')).memory()
const locks = new Holdfast(store, { space: `events-${subscriber}-${way}` })
const mutexes = Array.from({ length: TASKS }, (_, task) => locks.mutex(`lock-${task}`))
const work = async () => {}
const pair = async (task) => (await mutexes[task].acquire()).release()
const WAYS = {
  run: (ms) => serial(ms, () => mutexes[0].run(work)),
  pair: (ms) => serial(ms, () => pair(0)),
  many: (ms) => together(ms, TASKS, pair),
}

await SUBSCRIBERS[subscriber]()
// By count, not by time: on a busy machine a new contestant would meet one that is compiled.
for (let left = WARM_UP_PAIRS / TASKS; left > 0; left--) {
  if (way === 'many') await Promise.all(mutexes.map((_, task) => pair(task)))
  else for (let each = 0; each < TASKS; each++) await (way === 'run' ? mutexes[0].run(work) : pair(0))
}
parentPort.on('message', async (ms) => {
  if (ms > 0) return parentPort.postMessage(await WAYS[way](ms))
  await locks.close()
  client?.disconnect()
  process.exit()
})
parentPort.postMessage('ready')
