import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { keptRun } from './kept.js'
import { reportOf, summaryOf } from './report.js'
import { keep, writePages } from './results.js'
import { prove } from './run.js'
import { STORES } from './stores/index.js'
import { head } from './worlds.mjs'

/** What scripts/prove.mjs was told. */
interface Campaign {
  readonly stores: readonly string[]
  readonly minutes: number
  readonly seed: number
  readonly grants: number | null
  readonly isReported: boolean
  /** Only writes the pages. */
  readonly hasOnlyPages: boolean
}

const told = JSON.parse(process.env['HOLDFAST_PROVE'] ?? '{}') as Campaign
const folder = join(import.meta.dirname, '../.cache/proof')
const chosen = STORES.filter(({ name }) => told.stores.length === 0 || told.stores.includes(name))
const { minutes, seed, grants } = told

describe('proof', () => {
  it('knows the stores', () => {
    const names = STORES.map(({ name }) => name)
    expect(names, `The stores are ${names.join(', ')}`).toEqual(expect.arrayContaining([...told.stores]))
  })

  if (told.hasOnlyPages) it('writes the pages', () => writePages())
  for (const store of told.hasOnlyPages ? [] : chosen) {
    const obstacle = store.obstacle()
    const title = obstacle === null ? store.title : `${store.title} (skipped: ${obstacle})`
    it.skipIf(obstacle !== null)(title, async () => {
      const file = join(folder, `${store.name}-${seed}.jsonl`)
      console.log(`${store.title}: seed ${seed}, history in ${file}`)
      const run = await prove(store, { seed, minutes, file, ...(grants !== null && { grants }) })
      const command = `npm run prove -- ${store.name} --minutes ${minutes} --seed ${seed}`
      const kept = keptRun(run, grants === null ? command : `${command} --grants ${grants}`, head())
      const report = reportOf(store, [kept])
      console.log(`${report}\n${summaryOf(store, run, kept)}`)
      writeFileSync(file.replace(/jsonl$/, 'md'), report)
      if (told.isReported) {
        keep(store, kept)
        writePages()
      }
      expect(run.violations).toEqual([])
    })
  }
})
