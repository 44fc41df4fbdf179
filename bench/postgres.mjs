import { Holdfast } from 'holdfast'
import { postgres as postgresStore } from 'holdfast/postgres'
import pg from 'pg'
import { median, medians, perSecond, perSecondTogether, table } from './measure.mjs'
import { postgresContenders } from './postgres-contenders.mjs'
import { postgresServer } from './postgres-server.mjs'
import { contended } from './processes.mjs'

const PEERS = ['verrou (pg)', 'advisory-lock']
const NAMES = [...PEERS, 'holdfast pg', 'holdfast postgres.js']
const COHORTS = ['holdfast pg, cohort', 'holdfast postgres.js, cohort']
const WAITERS = 200

/**
 * PostgreSQL beside verrou's SQL driver, and beside advisory-lock, which has a connection for each
 * lock.
 */
export async function postgres({ roundMs, rounds, quick }) {
  const server = await postgresServer()
  try {
    await uncontended(server.url, { roundMs, rounds })
    await contention(server.url, { rounds, turns: quick ? 10 : 40 })
    await crowds(server.url, Math.min(rounds, 3))
    for (const order of ['strict', 'cohort']) await idle(server.url, order)
  } finally {
    await server.stop()
  }
}

async function uncontended(url, { roundMs, rounds }) {
  const open = await Promise.all(NAMES.map(async (name) => [name, await postgresContenders[name](url)]))
  const each = (measure) => Object.fromEntries(open.map(([name, { pair }]) => [name, () => measure(pair)]))
  const serial = await medians(
    rounds,
    each((pair) => perSecond(roundMs, () => pair(0))),
  )
  table('Free lock, one after the other', 'pairs/s', serial, better(serial))
  const many = await medians(
    rounds,
    each((pair) => perSecondTogether(roundMs, 64, pair)),
  )
  table('64 tasks on 64 locks, one process, 10 connections', 'pairs/s', many, better(many))
  for (const [, { close }] of open) await close()
}

async function contention(url, { rounds, turns }) {
  const evenness = Object.fromEntries(NAMES.map((name) => [name, []]))
  const measure = async (name) => {
    const result = await contended({ suite: 'postgres', name, folder: url, processes: 4, tasks: 16, turns })
    evenness[name].push(result.evenness)
    return result.perSecond
  }
  const contestants = Object.fromEntries(NAMES.map((name) => [name, () => measure(name)]))
  const rows = await medians(Math.min(rounds, 3), contestants)
  table(`One lock, 4 processes × 16 × ${turns} turns, until all are done`, 'grants/s', rows, better(rows))
  for (const name of NAMES)
    console.log(`  ${name.padEnd(28)} first task done / last: ${median(evenness[name]).toFixed(2)}`)
}

/**
 * 200 who wait behind one holder in another process: how soon all are served after its release, and
 * how many connections that takes.
 */
async function crowds(url, rounds) {
  const watcher = new pg.Client(url)
  await watcher.connect()
  const names = [...NAMES, ...COHORTS]
  const connections = {}
  const drain = async (name) => {
    const [holder, others] = [await postgresContenders[name](url), await postgresContenders[name](url)]
    const leave = await holder.hold(0)
    const waiting = Array.from({ length: WAITERS }, () => others.pair(0))
    // Time enough for all to be in line, whatever kind of line it is.
    await new Promise((resolve) => setTimeout(resolve, 2000))
    connections[name] = await count(
      watcher,
      'SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL',
    )
    const start = performance.now()
    await leave()
    await Promise.all(waiting)
    const seconds = (performance.now() - start) / 1000
    await Promise.all([holder.close(), others.close()])
    return 1 / seconds
  }
  const rows = await medians(rounds, Object.fromEntries(names.map((name) => [name, () => drain(name)])))
  const figures = Object.fromEntries(Object.entries(rows).map(([name, perS]) => [name, perS * WAITERS]))
  table(`${WAITERS} who wait, served one after the other`, 'grants/s', figures, better(rows))
  for (const name of names)
    console.log(
      `  ${name.padEnd(28)} ${(1000 / rows[name]).toFixed(0).padStart(10)} ms for all, ${connections[name] - 1} connections`,
    )
  await watcher.end()
}

/** What 200 who wait cost while nothing happens. */
async function idle(url, order) {
  const [holder, others] = [1, 2].map(() => new Holdfast(postgresStore(url), { order }))
  const hold = await holder.mutex('crowd').acquire()
  const quit = new AbortController()
  const waiting = Array.from({ length: WAITERS }, () =>
    others
      .mutex('crowd')
      .acquire({ signal: quit.signal })
      .catch(() => {}),
  )
  await new Promise((resolve) => setTimeout(resolve, 2000))
  const watcher = new pg.Client(url)
  await watcher.connect()
  const transactions = () =>
    count(watcher, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'")
  const before = await transactions()
  await new Promise((resolve) => setTimeout(resolve, 10_000))
  // Our own question is one of them.
  const perS = ((await transactions()) - before - 1) / 10
  console.log(`\n${WAITERS} who wait, and nothing happens, ${order}: ${perS.toFixed(1)} queries/s`)
  quit.abort()
  await Promise.all(waiting)
  await hold.release()
  await Promise.all([holder.close(), others.close(), watcher.end()])
}

async function count(client, sql) {
  return Number(Object.values((await client.query(sql)).rows[0])[0])
}

function better(rows) {
  return rows[PEERS[0]] > rows[PEERS[1]] ? PEERS[0] : PEERS[1]
}
