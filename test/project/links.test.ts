import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { type Page, pageOf, withoutCode } from './pages.js'
import { expectNone, lineAt, root, sourcesIn } from './sources.js'

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
].map(pageOf)

it.each(pages)('every link of $path leads to a file, and to a heading of it', (page) => {
  expectNone(brokenLinks(page), 'Correct these links:')
})

it('every page that the sources name exists', () => {
  const named = sourcesIn('src').flatMap(({ path, text }) =>
    Array.from(text.matchAll(/\bdocs\/[\w/-]+\.md\b/g), ({ 0: page, index }) => ({
      page,
      place: `${path}:${lineAt(text, index)}`,
    })),
  )
  expect(named.length).toBeGreaterThan(10)
  const missing = named.filter(({ page }) => !existsSync(join(root, page)))
  expectNone(
    missing.map(({ page, place }) => `${place}: ${page}`),
    'These pages are missing:',
  )
})

it('a link that leads nowhere is noticed', () => {
  const text = [
    '# A page',
    '## What `is` kept?',
    '## Twice',
    '## Twice',
    '[a](#a-page) [b](#what-is-kept) [c](#twice-1) [d](https://example.com/#x) [e](../README.md)',
    '```sh',
    '# no heading',
    '```',
    '[f](#no-heading) [g](nowhere.md) [h](../README.md#nowhere) [i](#twice-2)',
  ].join('\n')
  expect(brokenLinks({ path: 'docs/planted.md', text })).toEqual([
    'docs/planted.md:9: #no-heading',
    'docs/planted.md:9: nowhere.md',
    'docs/planted.md:9: ../README.md#nowhere',
    'docs/planted.md:9: #twice-2',
  ])
})

/** The relative links without a target. */
function brokenLinks({ path, text }: Page): string[] {
  const prose = withoutCode(text)
  return [...prose.matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/g)]
    .filter(([, file = '', heading]) => {
      const target = join(dirname(path), file)
      if (file !== '' && !existsSync(join(root, target))) return true
      if (heading === undefined) return false
      return !headingsIn(file === '' ? text : pageOf(target).text).includes(heading)
    })
    .map(({ 0: link, index }) => `${path}:${lineAt(prose, index)}: ${link.slice(2, -1)}`)
}

/** The headings of a page, as links name them: a second one of the same text gets a number. */
function headingsIn(text: string): string[] {
  const seen = new Map<string, number>()
  return Array.from(withoutCode(text).matchAll(/^#+ (.*)$/gm), ([, heading = '']) => {
    const slug = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_\s-]/gu, '')
      .replace(/\s/g, '-')
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  })
}
