// The runs behind the charts. Each gives plain figures, which are kept in scripts/charts/runs.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, runNode } from '../ensure.mjs'

/** A file for each run: what the charts are drawn from. */
const fileOf = (name) => join(root, 'scripts/charts/runs', `${name}.json`)

export function readRun(name) {
  return JSON.parse(readFileSync(fileOf(name), 'utf8'))
}

export const RUNS = {
  'flash-sale': { command: 'npm run charts -- --run flash-sale', run: flashSale },
  'paused-worker': { command: 'npm run charts -- --run paused-worker', run: pausedWorker },
  'hot-lock': { command: 'npm run charts -- --run hot-lock', run: hotLock },
}

/** Runs it for real, and keeps its figures with the date and the command that repeats it. */
export async function repeat(name) {
  const { command, run } = RUNS[name]
  const figures = await run()
  const date = new Date().toISOString().slice(0, 10)
  writeFileSync(fileOf(name), `${JSON.stringify({ command, date, ...figures })}\n`)
  await runNode(['node_modules/@biomejs/biome/bin/biome', 'format', '--write', fileOf(name)])
}

/** The sale of `npm start`: the stock that each seller wrote, in the order of the sales. */
async function flashSale() {
  const { BUYERS, runSale, SELLERS, STOCK } = await import('../../demo/flash-sale/sale.mjs')
  const { openStage } = await import('../../demo/flash-sale/stage.mjs')
  const { folder, crew } = openStage()
  const lock = { store: `sqlite:${join(folder, 'locks.db')}`, name: 'stock' }
  const progress = { step() {}, done() {} }
  const without = await runSale({ crew, folder, lock: undefined, progress })
  const under = await runSale({ crew, folder, lock, progress })
  return {
    stock: STOCK,
    buyers: BUYERS,
    processes: SELLERS,
    withoutLock: without.stocks,
    withLock: under.stocks,
  }
}

/** The pause of `npm start`, once with a resource that checks fences, and once without. */
async function pausedWorker() {
  const { LEASE_MS, pauseScene } = await import('../../demo/flash-sale/pause-scene.mjs')
  const { openStage } = await import('../../demo/flash-sale/stage.mjs')
  const { Warehouse } = await import('../../demo/flash-sale/warehouse.mjs')
  const { folder, crew } = openStage()
  const scene = async (checksFences) => {
    const lock = { store: `sqlite:${join(folder, 'locks.db')}`, name: `order:${checksFences}` }
    const warehouse = new Warehouse({ checksFences })
    const { isNewestAccepted, isStaleAccepted, isNewestIntact, isValidOnWaking, moments } = await pauseScene({
      crew,
      lock,
      warehouse,
      tell() {},
      // So that the two writes do not lie on each other in the picture.
      longerMs: 700,
    })
    return { isNewestAccepted, isStaleAccepted, isNewestIntact, isValidOnWaking, moments }
  }
  return { leaseMs: LEASE_MS, withoutFence: await scene(false), withFence: await scene(true) }
}

/** The first tables of the benchmark, which put Holdfast beside its peers. */
async function hotLock() {
  const json = join(root, '.cache/hot-lock.json')
  const code = await runNode(['bench/main.mjs', 'cohort', '--quick', '--json', json])
  if (code !== 0) throw new Error(`The benchmark ended with ${code}`)
  const tables = JSON.parse(readFileSync(json, 'utf8'))
  rmSync(json)
  return figuresOf(tables)
}

function figuresOf(tables) {
  const peers = tables.filter(({ rows }) => 'redlock' in rows)
  const whole = (rows) => Object.fromEntries(Object.entries(rows).map(([name, n]) => [name, Math.round(n)]))
  return { tables: peers.map(({ title, unit, rows }) => ({ title, unit, rows: whole(rows) })) }
}
