import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Holdfast } from 'holdfast'
import { mysql as mysqlStore } from 'holdfast/mysql'
import { createConnection } from 'mysql2/promise'
import { median, medians, perSecond, perSecondTogether, table } from './measure.mjs'
import { mysqlContenders } from './mysql-contenders.mjs'
import { mysqlServer } from './mysql-server.mjs'
import { contended } from './processes.mjs'

const NAMES = ['verrou', 'holdfast mysql2', 'holdfast mariadb']

/**
 * MariaDB or MySQL beside verrou's SQL driver, which has no line: who finds a lock taken tries
 * again after a quarter of a second.
 */
export async function mysql({ roundMs, rounds, quick }) {
  const server = await mysqlServer()
  try {
    await beside(server.url, { roundMs, rounds })
    await contention(server.url, { rounds, turns: quick ? 5 : 20 })
    await handOffs(server.url, quick ? 5 : 20)
    await crowd(server.url)
  } finally {
    await server.stop()
  }
}

async function beside(url, { roundMs, rounds }) {
  const open = await Promise.all(NAMES.map(async (name) => [name, await mysqlContenders[name](url)]))
  const each = (measure) => Object.fromEntries(open.map(([name, { pair }]) => [name, () => measure(pair)]))
  const serial = await medians(
    rounds,
    each((pair) => perSecond(roundMs, () => pair(0))),
  )
  table('Free lock, one after the other', 'pairs/s', serial, NAMES[0])
  const many = await medians(
    rounds,
    each((pair) => perSecondTogether(roundMs, 64, pair)),
  )
  table('64 tasks on 64 locks, one process, 10 connections', 'pairs/s', many, NAMES[0])
  for (const [, { close }] of open) await close()
}

async function contention(url, { rounds, turns }) {
  const evenness = Object.fromEntries(NAMES.map((name) => [name, []]))
  const measure = async (name) => {
    const result = await contended({ suite: 'mysql', name, folder: url, processes: 4, tasks: 16, turns })
    evenness[name].push(result.evenness)
    return result.perSecond
  }
  const rows = await medians(
    Math.min(rounds, 3),
    Object.fromEntries(NAMES.map((name) => [name, () => measure(name)])),
  )
  table(`One lock, 4 processes × 16 × ${turns} turns, until all are done`, 'grants/s', rows, NAMES[0])
  for (const name of NAMES)
    console.log(`  ${name.padEnd(28)} first task done / last: ${median(evenness[name]).toFixed(2)}`)
}

/**
 * From the call of a release to the next grant, in strict order, over 4 processes with 16 tasks
 * each; and with one waiter at a time, who has waited for a while.
 */
async function handOffs(url, turns) {
  const children = Array.from({ length: 4 }, () =>
    fork(join(import.meta.dirname, 'hand-off-worker.mjs'), [url, '16', String(turns)]),
  )
  const ready = children.map((child) => once(child, 'message'))
  await Promise.all(ready)
  const results = children.map((child) => once(child, 'message'))
  for (const child of children) child.send('go')
  const holds = (await Promise.all(results)).flatMap(([message], from) =>
    message.map((hold) => ({ ...hold, from })),
  )
  holds.sort((a, b) => a.fence - b.fence)
  const steps = holds
    .slice(1)
    .map((hold, index) => ({ ms: hold.at - holds[index].left, isAcross: hold.from !== holds[index].from }))
  const across = steps.filter(({ isAcross }) => isAcross).map(({ ms }) => ms)
  console.log('\nHand-offs, 4 processes × 16 tasks')
  console.log(
    `  all: ${spread(steps.map(({ ms }) => ms))}; between processes: ${spread(across)} (${across.length} of ${steps.length})`,
  )
  for (const heldMs of [5, 50, 500])
    console.log(`  one waiter, lock held for ${heldMs} ms: ${spread(await pairwise(url, heldMs))}`)
}

async function pairwise(url, heldMs) {
  const sides = [1, 2].map(() => new Holdfast(mysqlStore(url), { order: 'strict' }))
  const took = []
  let hold = await sides[0].mutex('pair').acquire()
  for (let round = 1; round <= 20; round++) {
    const next = sides[round % 2]
      .mutex('pair')
      .acquire()
      .then((mine) => ({ mine, at: performance.now() }))
    await new Promise((resolve) => setTimeout(resolve, heldMs * (0.75 + Math.random() / 2)))
    const left = performance.now()
    await hold.release()
    const { mine, at } = await next
    took.push(at - left)
    hold = mine
  }
  await hold.release()
  await Promise.all(sides.map((side) => side.close()))
  return took
}

function spread(values) {
  const sorted = [...values].sort((a, b) => a - b)
  return `median ${median(sorted).toFixed(1)} ms, 9 of 10 within ${sorted[Math.floor(sorted.length * 0.9)].toFixed(1)} ms`
}

/**
 * 200 waiters behind one holder: what they cost while nothing happens, and how fast they are served
 * then.
 */
async function crowd(url) {
  const watcher = await createConnection(url)
  const runs = { verrou: [] }
  for (let round = 0; round < 3; round++) {
    runs.verrou.push({ ms: await drainVerrou(url) })
    for (const order of ['strict', 'cohort'])
      for (const clients of [1, 20]) {
        const name = `holdfast ${order}, ${clients} client${clients > 1 ? 's' : ''}`
        runs[name] = [...(runs[name] ?? []), await drainHoldfast(url, watcher, { clients, order })]
      }
  }
  console.log('\n200 waiters behind one holder')
  const drained = (name) => median(runs[name].map(({ ms }) => ms))
  for (const [name, rounds] of Object.entries(runs)) {
    const served = `all served ${drained(name).toFixed(0)} ms after the release`
    const ratio = `${(drained('verrou') / drained(name)).toFixed(1)} × verrou`
    const idle = rounds.flatMap(({ queries }) => queries?.toFixed(1) ?? []).join(', ')
    console.log(`  ${name.padEnd(28)} ${served}, ${ratio}${idle && `; idle: ${idle} queries/s`}`)
  }
  await watcher.end()
}

async function drainHoldfast(url, watcher, { clients, order }) {
  const holder = new Holdfast(mysqlStore(url))
  const others = Array.from({ length: clients }, () => new Holdfast(mysqlStore(url), { order }))
  const inLine = order === 'strict' ? 200 : clients
  const hold = await holder.mutex('crowd').acquire()
  const waiting = Array.from({ length: 200 }, async (_, index) => {
    const mine = await others[index % clients].mutex('crowd').acquire()
    await mine.release()
    return performance.now()
  })
  while ((await lineOf(holder, 'crowd'))?.waiters.length !== inLine) await pause(100)
  // The first moments are for clients that have just connected.
  await pause(2000)
  const before = await questions(watcher)
  await pause(5000)
  // Our own question is one of them.
  const queries = ((await questions(watcher)) - before - 1) / 5
  const start = performance.now()
  await hold.release()
  const ms = Math.max(...(await Promise.all(waiting))) - start
  await Promise.all([holder, ...others].map((locks) => locks.close()))
  return { queries, ms }
}

async function drainVerrou(url) {
  const { pair, hold, close } = await mysqlContenders.verrou(url)
  const release = await hold('crowd')
  const waiting = Array.from({ length: 200 }, async () => {
    await pair('crowd')
    return performance.now()
  })
  await pause(2000)
  const start = performance.now()
  await release()
  const ms = Math.max(...(await Promise.all(waiting))) - start
  await close()
  return ms
}

async function lineOf(locks, name) {
  for await (const line of locks.inspect({ prefix: name })) if (line.name === name) return line
  return undefined
}

async function questions(watcher) {
  const [[row]] = await watcher.query("SHOW GLOBAL STATUS LIKE 'Questions'")
  return Number(row.Value)
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
