// The pages as the site needs them. They stay what they are on GitHub, except for links: a README
// is the first page of its folder, and all pages of the repository are below one folder.
import { posix } from 'node:path'
import { LIST_OF_DECISIONS, placeOf, SIDEBAR } from './sidebar.mjs'

const PAGES = SIDEBAR.flatMap(({ items }) => items)
const { dirname, join, relative } = posix

/** Files beside the pages that links and pictures lead to, copied as they are. */
export const FOLDERS = ['docs/pictures', 'docs/grafana']

/**
 * The text of a page with links that work on the site. `from`: its path in the repository. Throws
 * for a link to something that is not on the site.
 */
export function onSite(text, from, place = placeOf(from)) {
  return outsideCode(text, (prose) =>
    prose.replace(/(\]\(|^\[[^\]]+\]: )(?!\w+:|#)([^)#\s]+)/gm, (_link, before, file) => {
      const target = targetOf(join(dirname(from), file))
      if (target === undefined) throw new Error(`${from}: ${file} is not on the site`)
      return `${before}${relative(dirname(place), target)}`
    }),
  )
}

function targetOf(path) {
  if (path === dirname(LIST_OF_DECISIONS)) return placeOf(LIST_OF_DECISIONS)
  if (FOLDERS.some((folder) => path.startsWith(`${folder}/`))) return path
  return PAGES.some(({ page }) => page === path) ? placeOf(path) : undefined
}

/** Doc comments name pages by their path; in the reference, those are links. */
export function withLinksToPages(text, place) {
  return outsideCode(text, (prose) =>
    prose.replace(/`(docs\/[\w/-]+\.md)`/g, (code, page) => {
      const target = targetOf(page)
      return target === undefined ? code : `[${code}](${relative(dirname(place), target)})`
    }),
  )
}

/** Replaces `<!-- FILE: HEADING -->` by what that section of that file says. */
export function withSections(text, read) {
  return text.replace(/^<!-- (\S+\.md): (.+) -->$/gm, (_mark, file, heading) => {
    const lines = onSite(read(file), file, 'index.md').split('\n')
    const start = lines.indexOf(`## ${heading}`)
    if (start < 0) throw new Error(`${file} has no section '${heading}'`)
    const length = lines.slice(start + 1).findIndex((line) => line.startsWith('## '))
    return lines
      .slice(start + 1, length < 0 ? undefined : start + 1 + length)
      .join('\n')
      .trim()
  })
}

/** What a reader of the plain text needs: no settings of the theme, boxes for its style, or ids. */
export function plain(text) {
  const [, title] = /^\s+text: (.*)$/m.exec(/^---\n[\s\S]*?\n---\n/.exec(text)?.[0] ?? '') ?? []
  const body = text
    .replace(/^---\n[\s\S]*?\n---\n/, '')
    .replace(/^<\/?div.*>\n+/gm, '')
    .replace(/^(#+ .*) \{#[^}]+\}$/gm, '$1')
  return title === undefined ? body : `# Holdfast: ${title}\n${body}`
}

/** The list of the records in docs/decisions. */
export function listOfDecisions() {
  const records = PAGES.filter(
    ({ page }) => dirname(page) === dirname(LIST_OF_DECISIONS) && page !== LIST_OF_DECISIONS,
  )
  const items = records.map(({ text, page }) => `- [${text}](${posix.basename(page)})`)
  return `# Decisions\n\nWhy things are as they are. Each record is for maintainers.\n\n${items.join('\n')}\n`
}

function outsideCode(text, change) {
  return text
    .split(/(^```[\s\S]*?^```)/m)
    .map((piece) => (piece.startsWith('```') ? piece : change(piece)))
    .join('')
}
