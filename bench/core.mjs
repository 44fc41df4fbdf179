// What the core costs: ours beside the least that does the same, as ratios, each with its goal.
import { Mutex } from 'async-mutex'
import { Holdfast } from 'holdfast'
import { memory } from 'holdfast/memory'
import { redis } from 'holdfast/redis'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { bareIoredis, bareNodeRedis } from './bare-redis.mjs'
import { lingering } from './linger.mjs'
import { redisServer } from './redis-server.mjs'
import { beside, serial, together } from './slices.mjs'

const TASKS = 64
const GOALS = { free: 0.5, hot: 0.5, serial: 0.9, many: 0.95 }
const work = async () => {}

export async function core({ quick }) {
  const plan = quick
    ? { sliceMs: 20, warmUps: 25, slices: 31, handOffs: 100 }
    : { sliceMs: 50, warmUps: 40, slices: 101, handOffs: 1000 }
  console.log(
    `\nThe core, Node ${process.versions.node}: medians of ${plan.slices} slices of ${plan.sliceMs} ms each`,
  )
  await inMemory(plan)
  const server = await redisServer()
  const clients = { ioredis: new Redis(server.url), 'node-redis': await connected(server.url) }
  try {
    await hotLock(clients.ioredis, plan)
    await besideBare('ioredis', clients.ioredis, bareIoredis(clients.ioredis), plan)
    await besideBare('node-redis', clients['node-redis'], await bareNodeRedis(clients['node-redis']), plan)
    await lingering(server.url, plan)
  } finally {
    clients.ioredis.disconnect()
    clients['node-redis'].destroy()
    await server.stop()
  }
}

function connected(url) {
  return createClient({ url }).connect()
}

/** A lock that nobody else wants, without a server. */
async function inMemory(plan) {
  const locks = new Holdfast(memory())
  const mutex = locks.mutex('free')
  const peer = new Mutex()
  const ways = [
    ['run', () => mutex.run(work), () => peer.runExclusive(work)],
    ['mutex(name).run', () => locks.mutex('free').run(work), () => peer.runExclusive(work)],
    ['acquire, release', () => pairOf(mutex), () => peerPairOf(peer)],
  ]
  for (const [way, ours, theirs] of ways) {
    const figures = await beside(
      plan,
      () => serial(plan.sliceMs, ours),
      () => serial(plan.sliceMs, theirs),
    )
    line(`memory, free lock, ${way}`, figures, 'async-mutex', GOALS.free)
  }
  await locks.close()
}

/** All tasks of one process on one lock. */
async function hotLock(client, plan) {
  const locks = new Holdfast(redis(client))
  const mutex = locks.mutex('hot')
  const peer = new Mutex()
  const ways = [
    ['run', () => mutex.run(work), () => peer.runExclusive(work)],
    ['acquire, release', () => pairOf(mutex), () => peerPairOf(peer)],
  ]
  for (const [way, ours, theirs] of ways) {
    const figures = await beside(
      plan,
      () => together(plan.sliceMs, TASKS, ours),
      () => together(plan.sliceMs, TASKS, theirs),
    )
    line(`Redis, ${TASKS} tasks on one lock, ${way}`, figures, 'async-mutex', GOALS.hot)
  }
  await locks.close()
}

/** Beside SET NX PX and a compare-and-delete, through the same client. */
async function besideBare(kind, client, bare, plan) {
  const locks = new Holdfast(redis(client))
  const mutexes = Array.from({ length: TASKS }, (_, task) => locks.mutex(`lock-${task}`))
  const one = await beside(
    plan,
    () => serial(plan.sliceMs, () => pairOf(mutexes[0])),
    () => serial(plan.sliceMs, () => bare.pair(0)),
  )
  line(`Redis, one pair after the other, ${kind}`, one, 'SET NX PX', GOALS.serial)
  const { ratio } = await beside(
    plan,
    () => serial(plan.sliceMs, () => bare.leastPair(0)),
    () => serial(plan.sliceMs, () => bare.pair(0)),
  )
  console.log(
    `    ${ratio.toPrecision(3)} by bare scripts that only read the clock, and read and write one field`,
  )
  const many = await beside(
    plan,
    () => together(plan.sliceMs, TASKS, (task) => pairOf(mutexes[task])),
    () => together(plan.sliceMs, TASKS, (task) => bare.pair(task)),
  )
  line(`Redis, ${TASKS} tasks on ${TASKS} locks, ${kind}`, many, 'SET NX PX', GOALS.many)
  await locks.close()
}

async function pairOf(mutex) {
  const hold = await mutex.acquire()
  await hold.release()
}

async function peerPairOf(mutex) {
  const release = await mutex.acquire()
  release()
}

function line(title, { rate, peerRate, ratio }, peer, goal) {
  const rates = [rate, peerRate].map((each) => Math.round(each).toLocaleString('en').padStart(9))
  const verdict = ratio >= goal ? 'reached' : 'missed'
  console.log(
    `  ${title.padEnd(48)} ${ratio.toPrecision(3).padStart(6)} × ${peer.padEnd(11)} goal ${String(goal).padEnd(4)} ${verdict.padEnd(7)} ${rates.join(' and ')} pairs/s`,
  )
}
