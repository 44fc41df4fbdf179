// npm run prove: processes that contend for locks on each store, under faults, and a judgement of
// what they did. `npm run prove -- redis sqlite --minutes 5` runs these stores for five minutes
// each. `--seed 42` repeats the faults of a run in their order. `--grants 100000` ends a run with
// the round that brings so many grants under faults, if that is sooner. A round has each fault
// alone, then each in a pair. `--report` adds the run to docs/proof. `--pages` runs nothing, and
// writes these pages again from the results that are kept.
import { parseArgs } from 'node:util'
import { ensureBuilt, ensureInstalled, runNode } from './ensure.mjs'
import { ensurePorcupine } from './porcupine.mjs'
import { ensurePrevious } from './previous.mjs'
import { ensureServers } from './servers.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '3' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
    grants: { type: 'string' },
    report: { type: 'boolean', default: false },
    pages: { type: 'boolean', default: false },
  },
})
const [minutes, seed, grants] = [values.minutes, values.seed, values.grants ?? null].map(numberOf)
ensureInstalled()
ensureBuilt()
const absent = [...(await ensureServers()), ...ensurePrevious(), ensurePorcupine()]
for (const { name, explanation } of absent.filter((each) => each !== null))
  console.log(`Without ${name}: ${explanation}`)
const told = {
  stores: positionals,
  minutes,
  seed,
  grants,
  isReported: values.report,
  hasOnlyPages: values.pages,
}
const args = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'proof/vitest.config.ts']
process.exitCode = await runNode(args, {
  env: { ...process.env, HOLDFAST_PROVE: JSON.stringify(told) },
  stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
})

function numberOf(text) {
  if (text === null) return null
  if (Number(text) >= 0) return Number(text)
  console.error(`Not a number: ${text}. Write, for example: npm run prove -- redis --minutes 5 --seed 42`)
  process.exit(1)
}
