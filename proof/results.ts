import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { KeptRun } from './kept.js'
import { OVERVIEW, overviewOf, reportOf } from './report.js'
import type { ProvedStore } from './store.js'
import { STORES } from './stores/index.js'
import { table } from './text.js'

const RESULTS = join(import.meta.dirname, 'results')
const PAGES = join(import.meta.dirname, '../docs/proof')
const [BEGIN, END] = ['<!-- begin: all stores -->', '<!-- end: all stores -->']

/** Adds the run to the results of the store. A run with the same command takes the place of it. */
export function keep(store: ProvedStore, run: KeptRun): void {
  mkdirSync(RESULTS, { recursive: true })
  const others = runsOf(store).filter(({ command }) => command !== run.command)
  writeFileSync(fileOf(store), `${JSON.stringify([...others, run], null, 2)}\n`)
}

/** Writes the page of each store that has results, and the table over all of them. */
export function writePages(): void {
  for (const [path, text] of Object.entries(pages())) writeFileSync(path, text)
}

/** The pages as they should be, by their paths. */
export function pages(): Record<string, string> {
  const proved = STORES.filter((store) => runsOf(store).length > 0)
  const first = join(PAGES, 'README.md')
  const text = readFileSync(first, 'utf8')
  const [before, after] = [text.slice(0, text.indexOf(BEGIN)), text.slice(text.indexOf(END))]
  const overview = table(
    OVERVIEW,
    proved.map((store) => overviewOf(store, runsOf(store))),
  )
  return {
    [first]: `${before}${BEGIN}\n\n${overview}\n\n${after}`,
    ...Object.fromEntries(
      proved.map((store) => [join(PAGES, `${store.name}.md`), reportOf(store, runsOf(store))]),
    ),
  }
}

function runsOf(store: ProvedStore): KeptRun[] {
  return existsSync(fileOf(store)) ? JSON.parse(readFileSync(fileOf(store), 'utf8')) : []
}

function fileOf({ name }: ProvedStore): string {
  return join(RESULTS, `${name}.json`)
}
