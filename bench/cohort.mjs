// The hot lock: many tasks of a process on one name. With the cohort (the default), in strict order, and beside the peers on Redis.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { median, medians, table } from './measure.mjs'
import { contended, contendedFor, oneAgainstMany } from './processes.mjs'
import { redisServer } from './redis-server.mjs'

const PEERS = ['redis-semaphore', 'redlock', 'verrou']
const ORDERS = ['cohort', 'strict']

/** `stores`: URLs of further stores to measure. Memory, SQLite and a private Redis are always there. */
export async function cohort({ roundMs, rounds, quick, stores = [] }) {
  const server = await redisServer()
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-cohort-'))
  const few = { rounds: Math.min(rounds, 3), ms: roundMs * 2 }
  try {
    await besidePeers(server.url, { processes: 1, tasks: 64, ...few })
    await besidePeers(server.url, { processes: 4, tasks: 16, ...few })
    const urls = [`sqlite:${join(folder, 'locks.db')}`, server.url, ...stores]
    for (const url of ['memory:', ...urls]) await onStore(url, { processes: 1, tasks: 64, ...few })
    for (const url of urls) await onStore(url, { processes: 4, tasks: 16, ...few })
    for (const url of urls) await loneTask(url, quick ? 10 : 40)
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function besidePeers(url, { processes, tasks, ms, rounds }) {
  const client = new Redis(url)
  const [evenness, commands] = [{}, {}]
  const names = [...PEERS, ...ORDERS.map((order) => `holdfast ${order}`)]
  const measure = async (name) => {
    const before = await commandsOf(client)
    // The peers sleep most of the time: fewer turns tell the same of them.
    const turns = Math.ceil(ms / (PEERS.includes(name) ? 60 : 3))
    const result = await contended({ suite: 'cohort', name, folder: url, processes, tasks, turns })
    const sent = (await commandsOf(client)) - before - 1
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
}

/** One process with 1 task beside one with 1,000: how many others are served before each of its turns. */
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
