import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CHARTS } from '../../scripts/charts/draw.mjs'
import { readRun } from '../../scripts/charts/runs.mjs'
import { withTables } from '../../scripts/tables.mjs'
import { check } from '../../site/check.mjs'
import { llms } from '../../site/llms.mjs'
import { onSite, plain, withLinksToPages, withSections } from '../../site/pages.mjs'
import { LIST_OF_DECISIONS, placeOf, REFERENCE, SIDEBAR } from '../../site/sidebar.mjs'
import { root } from './sources.js'

interface Group {
  readonly items: readonly { readonly page: string }[]
}

const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const shown = (SIDEBAR as readonly Group[]).flatMap(({ items }) => items.map(({ page }) => page))
const generated = [LIST_OF_DECISIONS, ...REFERENCE.map(({ page }) => page)]
const written = shown.filter((page) => !generated.includes(page))

// `npm run docs` builds the site and `npm run test:docs` opens it. This is what can be known without
// its tools.
describe('the documentation site', () => {
  it('has every page of docs in its sidebar, once', () => {
    const pages = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name.replaceAll('\\', '/')}`)
    const others = readdirSync(root).filter((name) => name.endsWith('.md'))
    expect([...written].sort()).toEqual([...pages, ...others].sort())
  })

  it('has a page of the reference for every export, from a source that exists', () => {
    const names = Object.keys(JSON.parse(read('package.json')).exports).filter(
      (name) => !name.endsWith('.json'),
    )
    expect(REFERENCE.map(({ name }) => name)).toEqual(names.map((name) => name.replace('.', 'holdfast')))
    expect(REFERENCE.filter(({ source }) => !existsSync(join(root, source)))).toEqual([])
    expect(shown).toEqual(expect.arrayContaining(REFERENCE.map(({ page }) => page)))
  })

  it('has a place of its own for every page', () => {
    const places = ['index.md', ...shown.map(placeOf)]
    expect(new Set(places.map((place) => place.toLowerCase())).size).toBe(places.length)
  })

  it('contains what its pages link to', () => {
    for (const page of written) expect(() => onSite(read(page), page), page).not.toThrow()
    const first = withSections(read('site/index.md'), read)
    expect(first).toContain("await locks.mutex('order:42').run(")
    expect(() => onSite(plain(first), 'index.md')).not.toThrow()
  })

  it.each(Object.entries(CHARTS))('shows %s as its figures say', (name, draw) => {
    expect(draw(readRun(name)), 'run `npm run charts`').toBe(read(`docs/pictures/${name}.svg`))
  })
})

it('the tables of runtimes and servers are those of the last runs', () => {
  const page = read('docs/runtimes.md')
  expect(withTables(page), 'run `node scripts/tables.mjs`').toBe(page)
})

// docs/three-runs.md says so, and `npm run charts -- --run` can replace the figures.
describe('the runs behind the charts', () => {
  it('show an exact sale with the lock, and more sold than there was without it', () => {
    const { stock, withLock, withoutLock } = readRun('flash-sale')
    expect(withLock).toEqual(Array.from({ length: stock }, (_, sold) => stock - sold - 1))
    expect(withoutLock.length).toBeGreaterThan(stock)
  })

  it('show a late write that only the fence stops, by a worker that could have known', () => {
    const { withFence, withoutFence, leaseMs } = readRun('paused-worker')
    expect(withoutFence).toMatchObject({
      isStaleAccepted: true,
      isNewestIntact: false,
      isValidOnWaking: false,
    })
    expect(withFence).toMatchObject({ isStaleAccepted: false, isNewestIntact: true, isValidOnWaking: false })
    expect(leaseMs).toBe(1500)
  })

  it('show a hot lock that is faster than each peer, in either order', () => {
    for (const { rows } of readRun('hot-lock').tables) {
      const { 'holdfast cohort': cohort, 'holdfast strict': strict, ...peers } = rows
      expect(Math.min(cohort, strict)).toBeGreaterThan(Math.max(...(Object.values(peers) as number[])))
    }
  })
})

describe('the pages of the site', () => {
  it('keep their links, although README and the folder of the decisions have other names there', () => {
    const text = [
      '[a](README.md#b) [b](stores/redis.md) [c](decisions) [d](https://a.b/README.md)',
      '[e]: ../README.md',
    ].join('\n')
    const page = onSite(['```md', '[a](nowhere.md)', '```', text].join('\n'), 'docs/mutex.md')
    expect(page).toContain(
      '[a](index.md#b) [b](stores/redis.md) [c](decisions/index.md) [d](https://a.b/README.md)',
    )
    expect(page).toContain('[e]: ../overview.md')
    expect(() => onSite('[a](../src/index.ts)', 'docs/mutex.md')).toThrow('is not on the site')
  })

  it('are linked from doc comments', () => {
    expect(withLinksToPages('See `docs/mutex.md`.', 'reference/holdfast/redis.md')).toBe(
      'See [`docs/mutex.md`](../../docs/mutex.md).',
    )
  })
})

describe('the check of the built site', () => {
  it('accepts a site in which all is well', () => {
    expect(check(tinySite({}))).toEqual([])
  })

  it('notices what is missing, dead or foreign', () => {
    const folder = tinySite({
      'docs/mutex.html':
        '<a href="/nowhere">a</a><a href="latch.html#x">b</a><a href="latch.html#y">c</a><script src="https://cdn.example/a.js"></script><link rel="stylesheet" href="//fonts.example/a.css">',
      'docs/latch.html': '<h2 id="x">x</h2>',
      'docs/latch.md': '[a](nowhere.md)',
      'assets/a.css': '@import "https://fonts.example/b.css";',
    })
    rmSync(join(folder, 'docs/once.md'))
    rmSync(join(folder, 'docs/barrier.html'))
    expect(check(folder).sort()).toEqual(
      [
        'docs/once.md has no Markdown beside it',
        'docs/barrier.md has no HTML',
        'docs/mutex.html: /nowhere leads nowhere',
        'docs/mutex.html: latch.html#y leads nowhere',
        'docs/latch.md: nowhere.md leads nowhere',
        'llms.txt: docs/once.md leads nowhere',
        'docs/mutex.html loads https://cdn.example/a.js',
        'docs/mutex.html loads //fonts.example/a.css',
        'assets/a.css loads https://fonts.example/b.css',
      ].sort(),
    )
  })

  it('notices what the search or llms.txt does not have', () => {
    const folder = tinySite({ 'assets/@localSearchIndexroot.x.js': '"/docs/"' })
    writeFileSync(join(folder, 'llms.txt'), '')
    const findings = check(folder)
    expect(findings).toContain('docs/mutex.md is not in llms.txt')
    expect(findings).toContain('docs/mutex.md is not in the search index')
    expect(findings).not.toContain('docs/README.md is not in the search index')
  })
})

/** Every page of the sidebar, empty, except for the given files. */
function tinySite(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-site-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const places = ['index.md', ...shown.map(placeOf)]
  const htmls = places.map((place) => place.replace(/md$/, 'html'))
  const ids = htmls.map((html) => `"/${html.replace(/(^|\/)index\.html$/, '$1')}"`)
  const all: Record<string, string> = {
    ...Object.fromEntries([...places, ...htmls].map((file) => [file, ''])),
    'llms.txt': llms(() => ''),
    'assets/@localSearchIndexroot.x.js': ids.join(),
    ...files,
  }
  for (const [file, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  return folder
}
