import { Holdfast } from 'holdfast'
import { redis as redisStore } from 'holdfast/redis'
import { Redis } from 'ioredis'
import { median, medians, perSecond, perSecondTogether, table } from './measure.mjs'
import { contended } from './processes.mjs'
import { redisContenders } from './redis-contenders.mjs'
import { redisServer } from './redis-server.mjs'

/** Redis beside the raw commands, redis-semaphore and redlock. */
export async function redis({ roundMs, rounds, quick }) {
  const server = await redisServer()
  try {
    for (const client of ['ioredis', 'node-redis']) await beside(server.url, client, { roundMs, rounds })
    await contention(server.url, { rounds, turns: quick ? 10 : 100 })
    await crowd(server.url, rounds)
    await longLines(server.url, quick ? [10, 1000] : [10, 1000, 100_000], quick ? 40 : 200)
  } finally {
    await server.stop()
  }
}

/** Against the floor, on the same client. */
async function beside(url, client, { roundMs, rounds }) {
  const names = [`raw ${client}`, `holdfast ${client}`]
  const open = await Promise.all(names.map(async (name) => [name, await redisContenders[name](url)]))
  const each = (measure) => Object.fromEntries(open.map(([name, { pair }]) => [name, () => measure(pair)]))
  const serial = await medians(
    rounds,
    each((pair) => perSecond(roundMs, () => pair(0))),
  )
  table('Free lock, one after the other', 'pairs/s', serial, names[0])
  const many = await medians(
    rounds,
    each((pair) => perSecondTogether(roundMs, 64, pair)),
  )
  table('64 tasks on 64 locks, one process', 'pairs/s', many, names[0])
  for (const [, { close }] of open) await close()
}

async function contention(url, { rounds, turns }) {
  const names = ['redis-semaphore', 'redlock', 'bare hand-off', 'holdfast ioredis', 'holdfast node-redis']
  const evenness = Object.fromEntries(names.map((name) => [name, []]))
  const measure = async (name) => {
    const result = await contended({ suite: 'redis', name, folder: url, processes: 4, tasks: 16, turns })
    evenness[name].push(result.evenness)
    return result.perSecond
  }
  const contestants = Object.fromEntries(names.map((name) => [name, () => measure(name)]))
  const rows = await medians(Math.min(rounds, 3), contestants)
  const best = rows['redis-semaphore'] > rows.redlock ? 'redis-semaphore' : 'redlock'
  table(`One lock, 4 processes × 16 × ${turns} turns, until all are done`, 'grants/s', rows, best)
  for (const name of names)
    console.log(`  ${name.padEnd(28)} first task done / last: ${median(evenness[name]).toFixed(2)}`)
}

/**
 * 200 waiters behind one holder: what they cost while nothing happens, and how fast they are served
 * then.
 */
async function crowd(url, rounds) {
  const client = new Redis(url)
  const [holder, others] = [
    new Holdfast(redisStore(url), { order: 'strict' }),
    new Holdfast(redisStore(url), { order: 'strict' }),
  ]
  const drains = []
  let idle = 0
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    const hold = await holder.mutex('crowd').acquire()
    const served = []
    const waiting = Array.from({ length: 200 }, async () => {
      const mine = await others.mutex('crowd').acquire()
      served.push(performance.now())
      await mine.release()
    })
    await eventually(async () => (await lineOf(holder, 'crowd'))?.waiters.length === 200)
    if (round === 0) idle = await idleCommands(client)
    const start = performance.now()
    await hold.release()
    await Promise.all(waiting)
    if (round > 0) drains.push(served.at(-1) - start)
  }
  console.log('\n200 waiters behind one holder')
  console.log(
    `  ${idle.toFixed(1)} commands/s while idle; all served ${median(drains).toFixed(0)} ms after the release`,
  )
  await Promise.all([holder.close(), others.close()])
  client.disconnect()
}

/** Per second, of everybody. */
async function idleCommands(client) {
  const before = await commands(client)
  await new Promise((resolve) => setTimeout(resolve, 5000))
  // Our own question is one of them.
  return ((await commands(client)) - before - 1) / 5
}

/**
 * How long a release takes with many waiters in line. All lines exist at once and are measured by
 * turns. A waiter that was served waits again, so that each line is measured as often, as warm, and
 * at its full length.
 */
async function longLines(url, lengths, rounds) {
  const lines = []
  for (const length of lengths) lines.push(await longLine(url, length))
  const costs = lines.map(() => [])
  // The first ones are cold.
  for (let round = -10; round < rounds; round++)
    for (const [index, line] of lines.entries()) {
      const cost = await line.release()
      if (round >= 0) costs[index].push(cost)
    }
  const names = lengths.map((length) => `${length.toLocaleString('en')} in line`)
  const figures = Object.fromEntries(names.map((name, index) => [name, 1 / median(costs[index])]))
  table(`Release, by the length of the line (${rounds} each)`, 'releases/ms', figures, names[0])
  for (const line of lines) await line.close()
}

async function longLine(url, length) {
  const name = `line-${length}`
  const locks = new Holdfast(redisStore(url), { storeTimeout: '1m', order: 'strict' })
  const quit = new AbortController()
  let hold = await locks.mutex(name).acquire()
  let onGrant = () => {}
  const wait = () =>
    locks
      .mutex(name)
      .acquire({ signal: quit.signal, lease: '10m' })
      .then(
        (mine) => onGrant(mine),
        () => {},
      )
  for (let waiter = 0; waiter < length; waiter++) {
    wait()
    if (waiter % 1000 === 999) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await eventually(async () => (await lineOf(locks, name))?.waiters.length === length)
  return {
    async release() {
      const next = new Promise((resolve) => {
        onGrant = resolve
      })
      const start = performance.now()
      await hold.release()
      const cost = performance.now() - start
      hold = await next
      wait()
      // The next measurement must not pay for that.
      await new Promise((resolve) => setTimeout(resolve, 2))
      return cost
    },
    async close() {
      quit.abort()
      await hold.release()
      await locks.close()
    },
  }
}

async function lineOf(locks, name) {
  for await (const line of locks.inspect({ prefix: name })) if (line.name === name) return line
  return undefined
}

async function commands(client) {
  return Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))[1])
}

async function eventually(condition) {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 100))
}
