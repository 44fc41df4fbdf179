// Takes the pictures of docs/pictures again, of real locks that are contended for. With a name, only
// these: `node scripts/pictures.mjs grafana`. Needs Chromium, and for Grafana's dashboard Redis and
// Prometheus: see scripts/servers.mjs.
import { join } from 'node:path'
import { ensureBuilt, ensureInstalled, root, runNode } from './ensure.mjs'

const PICTURES = {
  dashboard: 'test/server/ui/pictures.test.ts',
  grafana: 'test/observe/grafana/picture.test.ts',
}

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(PICTURES)
const unknown = names.filter((name) => !Object.hasOwn(PICTURES, name))
if (unknown.length > 0) {
  console.error(`No pictures ${unknown.join(', ')}: give ${Object.keys(PICTURES).join(' or ')}.`)
  process.exit(1)
}
ensureInstalled()
ensureBuilt()
const folder = join(root, 'docs/pictures')
const env = { ...process.env, HOLDFAST_PICTURES: folder }
const files = names.map((name) => PICTURES[name])
process.exitCode = await runNode(['node_modules/vitest/vitest.mjs', 'run', ...files], { env })
