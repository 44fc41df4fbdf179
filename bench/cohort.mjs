// The hot lock: many tasks of a process on one name. With the cohort (the default), in strict
// order, and beside the peers on Redis. Ends with a table of all stores whose servers are
// installed.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { missing } from '../scripts/servers.mjs'
import { median, medians, table } from './measure.mjs'
import { mysqlServer } from './mysql-server.mjs'
import { postgresServer } from './postgres-server.mjs'
import { contended, contendedFor, oneAgainstMany } from './processes.mjs'
import { redisServer } from './redis-server.mjs'
import { zookeeperServers } from './zookeeper-server.mjs'

const PEERS = ['redis-semaphore', 'redlock', 'verrou']
const ORDERS = ['cohort', 'strict']

/**
 * `stores`: URLs of further stores to measure. Memory, SQLite and Redis are always there, the
 * others where their servers are installed.
 */
export async function cohort({ roundMs, rounds, quick, stores = [] }) {
  const server = await redisServer()
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-cohort-'))
  const few = { rounds: Math.min(rounds, 3), ms: roundMs * 2 }
  const others = []
  try {
    await besidePeers(server.url, { processes: 1, tasks: 64, ...few })
    await besidePeers(server.url, { processes: 4, tasks: 16, ...few })
    others.push(...(await startOthers()))
    const urls = [
      `sqlite:${join(folder, 'locks.db')}`,
      server.url,
      ...others.map(({ url }) => url),
      ...stores,
    ]
    const results = {}
    const onEach = async (which, processes, tasks) => {
      for (const url of which)
        results[url] = { ...results[url], [processes]: await onStore(url, { processes, tasks, ...few }) }
    }
    await onEach(['memory:', ...urls], 1, 64)
    await onEach(urls, 4, 16)
    summary(results)
    for (const url of urls) await loneTask(url, quick ? 10 : 40)
  } finally {
    for (const { stop } of [server, ...others]) await stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function startOthers() {
  const starts = { postgres: postgresServer, mariadb: mysqlServer, zookeeper: zookeeperServer }
  const started = []
  for (const [name, start] of Object.entries(starts)) {
    const reason = missing(name)
    if (reason) console.log(`\nWithout ${name}: ${reason}`)
    else started.push(await start())
  }
  return started
}

async function zookeeperServer() {
  const { address, stop } = await zookeeperServers(1)
  return { url: `zookeeper://${address}`, stop }
}

/** All stores in one place. */
function summary(results) {
  console.log('\nOne lock, grants/s      1 process × 64 tasks                4 processes × 16 tasks')
  console.log('                        strict     cohort                   strict     cohort')
  for (const [url, runs] of Object.entries(results)) {
    const cells = [1, 4].map((processes) => {
      if (!runs[processes]) return ''
      const { strict, cohort } = runs[processes]
      const figures = [strict, cohort].map((figure) => Math.round(figure).toLocaleString('en').padStart(10))
      return `${figures.join(' ')} ${(cohort / strict).toPrecision(3).padStart(7)} ×`.padEnd(36)
    })
    console.log(`  ${kindOf(url).padEnd(17)} ${cells.join('').trimEnd()}`)
  }
}

async function besidePeers(url, { processes, tasks, ms, rounds }) {
  const client = new Redis(url)
  const [evenness, commands] = [{}, {}]
  const names = [...PEERS, ...ORDERS.map((order) => `holdfast ${order}`)]
  const measure = async (name) => {
    let before = 0
    const onWarm = async () => {
      before = await commandsOf(client)
    }
    // The peers sleep most of the time: fewer turns tell the same of them.
    const turns = Math.ceil(ms / (PEERS.includes(name) ? 60 : 3))
    const result = await contended({ suite: 'cohort', name, folder: url, processes, tasks, turns, onWarm })
    const sent = (await commandsOf(client)) - before
    evenness[name] = [...(evenness[name] ?? []), result.evenness]
    commands[name] = [...(commands[name] ?? []), (sent / (turns * tasks * processes)) * 10]
    return result.perSecond
  }
  const rows = await medians(rounds, Object.fromEntries(names.map((name) => [name, () => measure(name)])))
  const best = PEERS.reduce((one, other) => (rows[other] > rows[one] ? other : one))
  table(`Redis: one lock, ${processes} × ${tasks} tasks, until all are done`, 'grants/s', rows, best)
  for (const name of names)
    console.log(
      `  ${name.padEnd(28)} ${median(commands[name]).toFixed(2).padStart(8)} commands per 10 grants; first task done / last: ${median(evenness[name]).toFixed(2)}`,
    )
  client.disconnect()
}

/** What the order costs on one store, and how evenly the tasks are served. */
async function onStore(url, { processes, tasks, ms, rounds }) {
  const evenness = {}
  const measure = async (order) => {
    const result = await contendedFor({ name: `holdfast ${order}`, folder: url, processes, tasks, ms })
    evenness[order] = [...(evenness[order] ?? []), result.evenness]
    return result.perSecond
  }
  const rows = await medians(rounds, Object.fromEntries(ORDERS.map((order) => [order, () => measure(order)])))
  table(`${kindOf(url)}: one lock, ${processes} × ${tasks} tasks`, 'grants/s', rows, 'strict')
  for (const order of ORDERS)
    console.log(
      `  ${order.padEnd(28)} least-served / most-served task: ${median(evenness[order]).toFixed(2)}`,
    )
  return rows
}

/**
 * One process with 1 task beside one with 1,000: how many others are served before each of its
 * turns.
 */
async function loneTask(url, turns) {
  console.log(`\n${kindOf(url)}: a process with 1 task beside one with 1,000`)
  for (const order of ORDERS) {
    // In strict order a thousand others come before each turn: two tell enough.
    const count = order === 'strict' ? 2 : turns
    const between = await oneAgainstMany({ name: `holdfast ${order}`, folder: url, turns: count })
    console.log(
      `  ${order.padEnd(28)} ${median(between)} others before a turn of the lone task (median), ${Math.max(...between)} at most`,
    )
  }
}

function kindOf(url) {
  return url.slice(0, url.indexOf(':'))
}

async function commandsOf(client) {
  const stats = await client.info('commandstats')
  // What a client sends, not what the scripts do inside the server.
  const sent = ['evalsha', 'eval', 'set', 'get', 'fcall', 'wait', 'script|load']
  return [...stats.matchAll(/cmdstat_(\S+?):calls=(\d+)/g)]
    .filter(([, name]) => sent.includes(name))
    .reduce((sum, [, , calls]) => sum + Number(calls), 0)
}
