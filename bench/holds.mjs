import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Holdfast } from 'holdfast'
import { mysql } from 'holdfast/mysql'
import { postgres } from 'holdfast/postgres'
import { redis } from 'holdfast/redis'
import { sqlite } from 'holdfast/sqlite'
import { mysqlServer } from './mysql-server.mjs'
import { postgresServer } from './postgres-server.mjs'
import { redisServer } from './redis-server.mjs'

const LEASE = '3s'
/** The kernel counts processor time in these. */
const TICK_MS = 10

const STORES = {
  redis: [redisServer, redis],
  postgres: [postgresServer, postgres],
  mariadb: [mysqlServer, mysql],
  sqlite: [sqliteFolder, (folder) => sqlite(join(folder, 'locks.db'))],
}

/**
 * One client keeps many holds with a short lease for a while: none may be lost. All are asked for
 * in one tick, which must not be taken for an outage either. `HOLDFAST_BENCH_HOLDS` and
 * `HOLDFAST_BENCH_SECONDS` say how many and for how long; `--store redis` picks a store.
 */
export async function holds({ quick, stores }) {
  const count = Number(process.env.HOLDFAST_BENCH_HOLDS ?? 10_000)
  const seconds = Number(process.env.HOLDFAST_BENCH_SECONDS ?? (quick ? 10 : 60))
  const names = stores.length > 0 ? stores : Object.keys(STORES)
  console.log(`\n${count.toLocaleString('en')} holds with a lease of ${LEASE}, for ${seconds} s`)
  for (const name of names) {
    const [start, open] = STORES[name] ?? []
    if (!start) throw new Error(`No store '${name}'; there are ${Object.keys(STORES).join(', ')}`)
    const server = await start()
    try {
      console.log(
        `  ${name.padEnd(9)} ${report(await keep(open(server.url), server.pid, { count, seconds }))}`,
      )
    } finally {
      await server.stop()
    }
  }
}

async function keep(store, serverPid, { count, seconds }) {
  const calls = { pulses: 0, beats: 0, longestMs: 0 }
  const locks = new Holdfast(counted(store, calls))
  const losses = new Map()
  const note = (what) => losses.set(what, (losses.get(what) ?? 0) + 1)
  const start = performance.now()
  const asked = Array.from({ length: count }, (_, index) =>
    locks.mutex(`held ${index}`).acquire({ lease: LEASE }),
  )
  let held = 0
  for (const asking of asked)
    asking.then(
      (hold) => {
        held++
        hold.signal.addEventListener('abort', () =>
          note(`lost: ${hold.signal.reason.message.replace(/'.*?'/, '…')}`),
        )
      },
      (error) => note(`refused: ${error.message}`),
    )
  await Promise.allSettled(asked)
  const acquiredMs = performance.now() - start
  Object.assign(calls, { pulses: 0, beats: 0, longestMs: 0 })
  const before = [process.cpuUsage(), cpuMsOf(serverPid), performance.now()]
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const wallMs = performance.now() - before[2]
  const { user, system } = process.cpuUsage(before[0])
  const serverCpu = (cpuMsOf(serverPid) - before[1]) / wallMs
  const result = { held, losses: new Map(losses), acquiredMs, calls: { ...calls }, wallMs, serverCpu }
  await locks.close().catch(() => {})
  return { ...result, cpu: (user + system) / 1000 / wallMs }
}

function report({ held, losses, acquiredMs, calls, wallMs, cpu, serverCpu }) {
  const perSecond = (figure) => (figure / (wallMs / 1000)).toFixed(0)
  const bad = [...losses].map(([what, count]) => `${count} ${what}`).join('; ') || 'none lost'
  const load = `${perSecond(calls.pulses)} calls/s, ${perSecond(calls.beats)} renewals/s, longest call ${calls.longestMs.toFixed(0)} ms`
  const used = `CPU ${(cpu * 100).toFixed(0)} % here, ${(serverCpu * 100).toFixed(0)} % server`
  return `${held} held after ${(acquiredMs / 1000).toFixed(1)} s, ${bad}; ${load}; ${used}`
}

/** The store, with its pulses counted. */
function counted(store, calls) {
  const connect = (client) => {
    const connection = store.connect(client)
    const pulse = connection.pulse.bind(connection)
    connection.pulse = async (beats) => {
      calls.pulses++
      calls.beats += beats.length
      const start = performance.now()
      try {
        return await pulse(beats)
      } finally {
        calls.longestMs = Math.max(calls.longestMs, performance.now() - start)
      }
    }
    return connection
  }
  return { name: store.name, capabilities: store.capabilities, connect }
}

/**
 * The processor time of a process and of its children, as far as they live. Nothing where there is
 * no /proc.
 */
function cpuMsOf(pid) {
  let ticks = 0
  if (pid === undefined) return 0
  for (const each of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const fields = statOf(each)
    if (each === String(pid)) ticks += sum(fields.slice(11, 15))
    else if (fields[1] === String(pid)) ticks += sum(fields.slice(11, 13))
  }
  return ticks * TICK_MS
}

/**
 * The fields of /proc/PID/stat after the name of the program, which may have blanks: state, parent,
 * …
 */
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

function sum(figures) {
  return figures.reduce((total, each) => total + Number(each), 0)
}

async function sqliteFolder() {
  const url = mkdtempSync(join(tmpdir(), 'holdfast-bench-sqlite-'))
  return { url, stop: async () => rmSync(url, { recursive: true, force: true }) }
}
