import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from '../project/sources.js'
import { languagesOf, recipesOf } from './recipes.js'

const pages = readdirSync(join(root, 'docs/guides/frameworks')).map(
  (name) => `docs/guides/frameworks/${name}`,
)
const tests = readdirSync(import.meta.dirname)
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => readFileSync(join(import.meta.dirname, name), 'utf8'))

it.each(pages)('a test runs every program of %s', (page) => {
  const recipes = languagesOf(page).flatMap((language) => recipesOf(page, language))
  expect(recipes.length).toBeGreaterThan(0)
  const code = tests.filter((test) => test.includes(`'${page}'`)).join('\n')
  const headings = recipes.map(({ heading }) => heading)
  expect(headings.filter((heading) => !code.includes(`'${heading}'`))).toEqual([])
  expect(headings, 'one program under each heading').toEqual([...new Set(headings)])
})
