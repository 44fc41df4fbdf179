// What the built site must fulfil. Gives the findings, none if all is well.
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, posix } from 'node:path'
import { placeOf, SIDEBAR } from './sidebar.mjs'

/** What makes a browser load something: an address, except that of a link to click. */
const LOADS = /<(?:script|img|iframe|source|audio|video|object|embed)\b[^>]*?\b(?:src|data)="([^"]+)"/g
const LINK_TAG = /<link\b[^>]*>/g
const IN_CSS = /(?:url\(\s*|@import\s+)["']?([^"')]+)/g

export function check(folder, base = '/') {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) =>
    file.replaceAll('\\', '/'),
  )
  const site = { folder, base, files: new Set(files), html: pagesIn(folder, files) }
  return [...missing(site), ...deadLinks(site), ...foreignLoads(site)]
}

function pagesIn(folder, files) {
  return new Map(
    files
      .filter((file) => file.endsWith('.html'))
      .map((file) => {
        const text = readFileSync(join(folder, file), 'utf8')
        const ids = new Set(Array.from(text.matchAll(/\bid="([^"]+)"/g), ([, id]) => decode(id)))
        return [file, { text, ids }]
      }),
  )
}

/** Every page has its HTML and its Markdown, and is in the search index and in llms.txt. */
function missing({ folder, base, files, html }) {
  const llms = readFileSync(join(folder, 'llms.txt'), 'utf8')
  const index = [...files].filter((file) => /localSearchIndex.*\.js$/.test(file))
  if (index.length !== 1) return [`the search index: ${index.length} files`]
  const search = readFileSync(join(folder, index[0]), 'utf8')
  return SIDEBAR.flatMap(({ items }) => items).flatMap(({ page }) => {
    const place = placeOf(page)
    const shown = place.replace(/\.md$/, '.html')
    const address = `${base}${shown.replace(/(^|\/)index\.html$/, '$1')}`
    return [
      [html.has(shown), 'has no HTML'],
      [files.has(place), 'has no Markdown beside it'],
      [llms.includes(`](${place})`), 'is not in llms.txt'],
      [[`${address}"`, `${address}#`].some((id) => search.includes(id)), 'is not in the search index'],
    ]
      .filter(([isFine]) => !isFine)
      .map(([, what]) => `${page} ${what}`)
  })
}

/** Links of the HTML to a page, a heading or a file that does not exist; and of the Markdown. */
function deadLinks(site) {
  const ofHtml = [...site.html].flatMap(([file, { text }]) =>
    Array.from(text.matchAll(/<a\b[^>]*?\bhref="([^"]*)"/g), ([, href]) => decode(href))
      .filter((href) => !/^\w+:/.test(href) && !leadsSomewhere(site, file, href))
      .map((href) => `${file}: ${href} leads nowhere`),
  )
  const ofMarkdown = [...site.files]
    .filter((file) => file.endsWith('.md') || file === 'llms.txt')
    .flatMap((file) => {
      const text = readFileSync(join(site.folder, file), 'utf8').replace(/^```[\s\S]*?^```|`[^`\n]*`/gm, '')
      return Array.from(text.matchAll(/\]\((?!\w+:|#)([^)#\s]+)/g), ([, path]) => path)
        .filter((path) => !site.files.has(posix.join(posix.dirname(file), path)))
        .map((path) => `${file}: ${path} leads nowhere`)
    })
  return [...ofHtml, ...ofMarkdown]
}

function leadsSomewhere({ base, files, html }, from, href) {
  const [path = '', heading] = href.split('#')
  let target = from
  if (path.startsWith('/')) {
    if (!path.startsWith(base)) return false
    target = path.slice(base.length)
  } else if (path !== '') target = posix.join(posix.dirname(from), path)
  if (target === '' || target.endsWith('/')) target += 'index.html'
  if (extname(target) === '') target += '.html'
  const page = html.get(target)
  if (page === undefined) return files.has(target)
  return heading === undefined || heading === '' || page.ids.has(decodeURIComponent(heading))
}

/** What a browser would load from another host. */
function foreignLoads({ folder, files, html }) {
  const addresses = [...html].flatMap(([file, { text }]) => [
    ...Array.from(text.matchAll(LOADS), ([, address]) => [file, address]),
    ...Array.from(text.matchAll(LINK_TAG), ([tag]) => [file, /href="([^"]*)"/.exec(tag)?.[1] ?? '']),
  ])
  for (const file of files) {
    if (!file.endsWith('.css')) continue
    const css = readFileSync(join(folder, file), 'utf8')
    addresses.push(...Array.from(css.matchAll(IN_CSS), ([, address]) => [file, address]))
  }
  return addresses
    .filter(([, address]) => /^(?:\w+:)?\/\//.test(address))
    .map(([file, address]) => `${file} loads ${address}`)
}

function decode(text) {
  return text
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}
