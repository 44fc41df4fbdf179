// The tables of docs/runtimes.md, from what real runs wrote into scripts/tables. A run adds its
// outcome with `addRun`; `node scripts/tables.mjs` draws them again. A test compares them.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './ensure.mjs'

const PAGE = 'docs/runtimes.md'
const NOT_RUN = 'not run'

/**
 * What ran where: `on` a runtime, or a server, whose `store` is where it comes from. `cases` counts what was run, `passed` how much of it passed, `again` what passed
 * only at a second attempt, `left` how many cases do not fit the store.
 *
 * @typedef {{ on: string, version: string, store: string, date: string, cases: number,
 * passed: number, again: string[], failed: string[], left: number }} Run
 */

/** @returns {Run[]} */
export function readRuns(name) {
  const file = fileOf(name)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : []
}

/** In place of an earlier one of the same store on the same runtime or server. */
export function addRun(name, run) {
  const others = readRuns(name).filter(({ on, store }) => on !== run.on || store !== run.store)
  writeFileSync(fileOf(name), `${JSON.stringify([...others, run], null, 2)}\n`)
  drawTables()
}

/** The text of the page with the tables that its marks name. */
export function withTables(text) {
  const marks = /(<!-- table: (\w+) -->\n)[\s\S]*?(<!-- end of table -->)/g
  return text.replace(marks, (_all, begin, name, end) => `${begin}\n${TABLES[name](readRuns(name))}\n${end}`)
}

/** In the order of the columns and rows. */
export const RUNTIME_NAMES = ['Node 20', 'Node 22', 'Node 24', 'Node 26', 'Bun', 'Deno']
export const STORE_NAMES = [
  'memory',
  'SQLite',
  'Redis',
  'PostgreSQL',
  'MariaDB',
  'ZooKeeper',
  'etcd',
  'memcached',
  'a quorum of three Redis',
]

const TABLES = { runtimes: drawRuntimes, servers: drawServers }

function drawRuntimes(runs) {
  const versionOf = (name) => runs.find(({ on }) => on === name)?.version
  const titles = RUNTIME_NAMES.map((name) => `${name.split(' ')[0]} ${versionOf(name) ?? `${NOT_RUN}`}`)
  const rows = STORE_NAMES.map((store) => [
    store,
    ...RUNTIME_NAMES.map((name) => cellOf(runs.find((run) => run.on === name && run.store === store))),
  ])
  return `${tableOf(['store', ...titles], rows)}\n${notesOn(runs)}`
}

function drawServers(runs) {
  const titleOf = ({ on, version }) => `${on} ${version}`
  const sorted = [...runs].sort((a, b) => titleOf(a).localeCompare(titleOf(b), 'en', { numeric: true }))
  const rows = sorted.map((run) => [titleOf(run), run.store, cellOf(run), run.date])
  return `${tableOf(['server', 'from', 'cases that passed', 'on'], rows)}\n${notesOn(runs)}`
}

function cellOf(run) {
  if (!run) return NOT_RUN
  return run.failed.length === 0 ? `all ${run.cases}` : `${run.passed} of ${run.cases}`
}

/** What failed, and what failed once; the first few of each. */
function notesOn(runs) {
  const lines = runs.flatMap(({ on, store, failed, again }) => [
    ...someOf(failed).map((title) => `- Failed with ${on} on ${store}: ${title}.`),
    ...someOf(again).map((title) => `- Passed at the second attempt with ${on} on ${store}: ${title}.`),
  ])
  return lines.length === 0 ? '' : `\n${lines.map(wrapped).join('\n')}\n`
}

function someOf(titles) {
  return titles.length <= 3 ? titles : [...titles.slice(0, 3), `${titles.length - 3} more`]
}

function tableOf(titles, rows) {
  const lineOf = (cells) => `| ${cells.join(' | ')} |\n`
  return [titles, titles.map(() => '---'), ...rows].map(lineOf).join('')
}

/** At most 100 columns, as all prose. */
function wrapped(line) {
  const lines = ['']
  for (const word of line.split(' ')) {
    const last = lines.at(-1)
    if (last === '') lines[lines.length - 1] = word
    else if (last.length + word.length < 100) lines[lines.length - 1] += ` ${word}`
    else lines.push(`  ${word}`)
  }
  return lines.join('\n')
}

function drawTables() {
  const file = join(root, PAGE)
  writeFileSync(file, withTables(readFileSync(file, 'utf8')))
}

function fileOf(name) {
  return join(root, `scripts/tables/${name}.json`)
}

if (process.argv[1] === import.meta.filename) drawTables()
