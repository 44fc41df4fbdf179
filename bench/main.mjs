// Benchmarks beside their peers in the same run. Absolute figures are of this machine at this moment; only the ratios mean something.
import { parseArgs } from 'node:util'
import { embedded } from './embedded.mjs'
import { mysql } from './mysql.mjs'
import { postgres } from './postgres.mjs'
import { redis } from './redis.mjs'
import { zookeeper } from './zookeeper.mjs'

const SUITES = { embedded, redis, zookeeper, postgres, mysql }

const { values, positionals } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
  allowPositionals: true,
})

if (values.help) {
  console.log(`Usage: npm run bench -- [SUITE …] [--quick]

Suites: ${Object.keys(SUITES).join(', ')} (default: all)
--quick  shorter rounds, rougher figures`)
} else {
  for (const name of positionals.length > 0 ? positionals : Object.keys(SUITES)) {
    const suite = SUITES[name]
    if (!suite) throw new Error(`No suite '${name}'; there are ${Object.keys(SUITES).join(', ')}`)
    await suite({ roundMs: values.quick ? 300 : 1500, rounds: values.quick ? 3 : 5, quick: values.quick })
  }
}
