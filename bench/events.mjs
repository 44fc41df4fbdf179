// What events cost: nothing while nobody subscribes, beside an earlier build if one is given, and
// little with metrics or spans, beside the same without them. Each contestant has a thread of its
// own, because a channel that is subscribed to and left again slows down what follows.
import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { redisServer } from './redis-server.mjs'
import { beside } from './slices.mjs'

const HERE = join(import.meta.dirname, '..')
/** Without subscribers the rest is noise; with OpenTelemetry metrics at most a tenth slower. */
const GOALS = { unwatched: 0.98, metrics: 0.9 }
const WAYS = [
  ['run', 'run'],
  ['acquire, release', 'pair'],
  ['64 locks at once', 'many'],
]
const SUBSCRIBERS = [
  ['OpenTelemetry metrics', 'metrics'],
  ['Prometheus', 'prometheus'],
  ['OpenTelemetry metrics and spans', 'spans'],
]

export async function events({ quick, before }) {
  const plan = quick ? { sliceMs: 20, warmUps: 15, slices: 31 } : { sliceMs: 50, warmUps: 40, slices: 201 }
  console.log(
    `\nEvents, Node ${process.versions.node}: medians of ${plan.slices} slices of ${plan.sliceMs} ms each`,
  )
  const server = await redisServer()
  const places = [
    ['Redis', server.url, WAYS],
    ['memory', undefined, WAYS.slice(0, 2)],
  ]
  try {
    for (const [place, url, ways] of places)
      for (const [title, way] of ways) await compare(`${place}, ${title}`, { url, way }, plan, before)
  } finally {
    await server.stop()
  }
}

async function compare(title, { url, way }, plan, before) {
  const start = (subscriber, folder = HERE) => contestant({ folder, subscriber, url, way })
  const plain = await start('none')
  if (before !== undefined) {
    const earlier = await start('none', before)
    line(`${title}, nobody subscribes`, await duel(plan, plain, earlier), 'earlier build', GOALS.unwatched)
    await earlier.end()
  }
  for (const [name, subscriber] of SUBSCRIBERS) {
    const watched = await start(subscriber)
    const goal = url !== undefined && subscriber === 'metrics' ? GOALS.metrics : undefined
    line(`${title}, ${name}`, await duel(plan, watched, plain), 'no subscriber', goal)
    await watched.end()
  }
  await plain.end()
}

function duel(plan, one, other) {
  return beside(
    plan,
    () => one.slice(plan.sliceMs),
    () => other.slice(plan.sliceMs),
  )
}

async function contestant(workerData) {
  const worker = new Worker(join(import.meta.dirname, 'events-worker.mjs'), { workerData })
  await once(worker, 'message')
  const slice = async (ms) => {
    worker.postMessage(ms)
    return (await once(worker, 'message'))[0]
  }
  const end = async () => {
    worker.postMessage(0)
    await once(worker, 'exit')
  }
  return { slice, end }
}

function line(title, { rate, peerRate, ratio }, peer, goal) {
  const rates = [rate, peerRate].map((each) => Math.round(each).toLocaleString('en').padStart(9))
  const verdict = goal === undefined ? '' : `goal ${goal} ${ratio >= goal ? 'reached' : 'missed'}`
  console.log(
    `  ${title.padEnd(58)} ${ratio.toPrecision(3).padStart(6)} × ${peer.padEnd(13)} ${verdict.padEnd(17)} ${rates.join(' and ')} pairs/s`,
  )
}
