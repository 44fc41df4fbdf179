// npm run charts: draws the charts of docs/pictures from the figures in scripts/charts/runs. With
// --run it first makes new figures, all or those of one run: npm run charts -- --run flash-sale.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CHARTS } from './charts/draw.mjs'
import { RUNS, readRun, repeat } from './charts/runs.mjs'
import { ensureBuilt, ensureInstalled, root } from './ensure.mjs'

const { values, positionals } = parseArgs({
  options: { run: { type: 'boolean', default: false } },
  allowPositionals: true,
})
for (const name of positionals)
  if (!(name in RUNS)) throw new Error(`No run '${name}'; there are ${Object.keys(RUNS).join(', ')}`)

if (values.run) {
  ensureInstalled()
  ensureBuilt()
  for (const name of positionals.length > 0 ? positionals : Object.keys(RUNS)) await repeat(name)
}
for (const [name, draw] of Object.entries(CHARTS))
  writeFileSync(join(root, 'docs/pictures', `${name}.svg`), draw(readRun(name)))
// The demonstrations leave workers to be ended with the process.
process.exit()
