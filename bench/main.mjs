// Benchmarks beside their peers in the same run. Absolute figures are of this machine at this
// moment; only the ratios mean something.
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { tables } from './measure.mjs'

const SUITES = [
  'core',
  'embedded',
  'redis',
  'quorum',
  'zookeeper',
  'etcd',
  'postgres',
  'mysql',
  'memcached',
  'cohort',
  'holds',
  'fleet',
  'events',
]

const { values, positionals } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    store: { type: 'string', multiple: true, default: [] },
    before: { type: 'string' },
    json: { type: 'string' },
    // Read by scripts/bench.mjs, which starts this program with it.
    node: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
  allowPositionals: true,
})

if (values.help) {
  console.log(`Usage: npm run bench -- [SUITE …] [--quick]

Suites: ${SUITES.join(', ')} (default: all)
--quick      shorter rounds, rougher figures
--node PATH  run under another Node
-- store URL a further store for the suite cohort, as often as you like; for the suite holds, one of
-- its stores by name
--json FILE  write the figures of all tables to this file, too
--before FOLDER  an earlier build for the suite events: the folder that has its dist`)
} else {
  for (const name of positionals.length > 0 ? positionals : SUITES) {
    if (!SUITES.includes(name)) throw new Error(`No suite '${name}'; there are ${SUITES.join(', ')}`)
    const { [name]: suite } = await import(`./${name}.mjs`)
    const [roundMs, rounds] = values.quick ? [300, 3] : [1500, 5]
    await suite({ roundMs, rounds, quick: values.quick, stores: values.store, before: values.before })
  }
  if (values.json) writeFileSync(values.json, `${JSON.stringify(tables, null, 2)}\n`)
}
