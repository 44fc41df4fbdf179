// What a store and its clients do under much load; see scripts/prove-load.mjs.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { head } from '../worlds.mjs'
import { pageOf } from './report.mjs'
import { SCENARIOS } from './scenarios.mjs'
import { STORES } from './stores.mjs'

const RESULTS = join(import.meta.dirname, '../results/load.json')
const PAGE = join(import.meta.dirname, '../../docs/proof/load.md')

const { values, positionals } = parseArgs({
  options: {
    only: { type: 'string' },
    small: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
  allowPositionals: true,
})

if (values.help) {
  console.log(`Usage: npm run prove:load -- [STORE …] [--only SCENARIO,…] [--small] [--report]

Stores: ${Object.keys(STORES).join(', ')} (default: all)
Scenarios: ${Object.keys(SCENARIOS).join(', ')} (default: all)
--small    a twentieth of the load, to try it
--report   write what was seen to docs/proof/load.md

Example: npm run prove:load -- redis --only line`)
} else {
  await main()
}

async function main() {
  const stores = known('store', positionals, STORES)
  const scenarios = known('scenario', values.only?.split(',') ?? [], SCENARIOS)
  const results = {}
  let faulty = 0
  for (const store of stores) {
    for (const scenario of scenarios) {
      console.log(`\n${store}: ${scenario}`)
      const result = await load(store, scenario)
      for (const [what, seen] of Object.entries(result.facts)) console.log(`  ${what.padEnd(32)} ${seen}`)
      for (const fault of result.faults) console.log(`  FAULT: ${fault}`)
      faulty += result.faults.length
      results[store] = {
        ...results[store],
        [scenario]: { ...result, at: new Date().toISOString().slice(0, 10), commit: head() },
      }
    }
  }
  if (values.report) report(results)
  console.log(`\n${faulty === 0 ? 'No fault' : `${faulty} faults`}`)
  process.exitCode = faulty === 0 ? 0 : 1
}

function known(kind, asked, all) {
  const names = asked.length > 0 ? asked : Object.keys(all)
  const odd = names.find((name) => !(name in all))
  if (odd === undefined) return names
  console.error(`No ${kind} '${odd}'; there are ${Object.keys(all).join(', ')}`)
  process.exit(1)
}

async function load(store, scenario) {
  const server = await STORES[store].start()
  try {
    return await SCENARIOS[scenario]({ ...STORES[store], url: server.url }, values.small ? 0.05 : 1)
  } finally {
    await server.stop()
  }
}

/** Adds these results to those of earlier runs, and writes the page anew. */
function report(results) {
  const all = earlier()
  for (const [store, scenarios] of Object.entries(results)) all[store] = { ...all[store], ...scenarios }
  mkdirSync(join(RESULTS, '..'), { recursive: true })
  mkdirSync(join(PAGE, '..'), { recursive: true })
  writeFileSync(RESULTS, `${JSON.stringify(all, null, 2)}\n`)
  writeFileSync(PAGE, pageOf(all))
}

function earlier() {
  try {
    return JSON.parse(readFileSync(RESULTS, 'utf8'))
  } catch (error) {
    if (error.code === 'ENOENT') return {}
    throw error
  }
}
