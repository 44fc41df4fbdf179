import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Finding } from '../../src/index.js'
import { Holdfast } from '../../src/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { Bench } from './processes.js'

test('a sound file: everything is fine, as a table and as JSON', async () => {
  const bench = new Bench()
  const told = await bench.holdfast(['doctor']).done
  expect(told.code).toBe(0)
  expect(told.stdout).toMatch(/^LEVEL +ABOUT +FINDING\nfine +journal +SQLite .* in WAL mode/)
  const { stdout } = await bench.holdfast(['doctor', '--json']).done
  const findings = JSON.parse(stdout) as Finding[]
  expect(findings.map(({ level }) => level)).toEqual(['fine', 'fine', 'fine'])
  expect(findings.map(({ about }) => about)).toEqual(['journal', 'file system', 'integrity'])
})

test('a store that cannot be opened is told, a NAME is wrong usage', async () => {
  const bench = new Bench()
  const file = bench.path('broken.db')
  writeFileSync(file, 'this is no database'.repeat(100))
  const told = await bench.holdfast(['doctor', '--store', `sqlite:${file}`]).done
  expect(told.code).not.toBe(0)
  expect(told.stderr).toMatch(/is not an SQLite database/)
  expect(await bench.holdfast(['doctor', 'name']).done).toMatchObject({ code: 64 })
})

test('the memory store says that only this process sees its locks', async () => {
  await using locks = new Holdfast(memory())
  expect(await locks.check()).toMatchObject([{ level: 'risk', about: 'reach' }])
})
