import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { lineAt, root } from './sources.js'

/** A page of the documentation. */
export interface Page {
  /** From the root of the project. */
  readonly path: string
  readonly text: string
}

/** A passage of a page: a paragraph, an item of a list, or a cell of a table. */
export interface Block {
  readonly kind: 'prose' | 'cell'
  readonly line: number
  /** Without marks: each piece of code is the word `code`, a link is its text. */
  readonly text: string
}

export function pageOf(path: string): Page {
  return { path, text: readFileSync(join(root, path), 'utf8') }
}

/** The pages for users. The records in docs/decisions are for maintainers, and are left out. */
export function pagesForUsers(): Page[] {
  const namesIn = (folder: string): string[] =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`)
  const guides = ['docs/guides', 'docs/guides/frameworks', 'docs/guides/moving-from']
  const folders = ['docs', 'docs/stores', 'docs/proof', ...guides]
  const atTheRoot = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md']
  return [...atTheRoot, ...folders.flatMap(namesIn)].map(pageOf)
}

/** The text of a page with code blocks blanked out, so that line numbers stay. */
export function withoutCode(text: string): string {
  const blank = (code: string): string => code.replace(/[^\n]+/g, '')
  return text.replace(/^```[\s\S]*?^```/gm, blank).replace(/(?<=\n\n)(?: {4}.*\n|\n)+/g, blank)
}

/** The passages of a page. Headings are left out. */
export function blocksOf({ text }: Page): Block[] {
  const blocks: Block[] = []
  let index = 0
  for (const paragraph of withoutCode(text).split(/\n(?=\s*\n|\s*(?:[-*]|\d+\.) |#|\|)|(?<=^[#|].*)\n/m)) {
    const line = lineAt(text, index + paragraph.length - paragraph.trimStart().length)
    index += paragraph.length + 1
    const trimmed = paragraph.trim()
    if (trimmed === '' || trimmed.startsWith('#') || /^\|[ |:-]+$/.test(trimmed)) continue
    // The addresses of links, below the text.
    if (/^\[[^\]]+\]: /.test(trimmed)) continue
    if (trimmed.startsWith('|'))
      for (const cell of cellsOf(trimmed)) blocks.push({ kind: 'cell', line, text: plain(cell) })
    else blocks.push({ kind: 'prose', line, text: plain(trimmed.replace(/^(?:[-*]|\d+\.) /, '')) })
  }
  return blocks
}

function cellsOf(row: string): string[] {
  const cells = row.replace(/`[^`]*`/g, (code) => code.replaceAll('|', '/')).split(/(?<!\\)\|/)
  return cells.map((cell) => cell.trim()).filter((cell) => cell !== '')
}

function plain(text: string): string {
  return text
    .replace(/`[^`]*`/g, 'code')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\*+|(?<!\w)_|_(?!\w)/g, '')
    .replace(/\s+/g, ' ')
}

/** A sentence, and how many words it has. */
export interface Sentence {
  readonly line: number
  readonly words: number
  readonly text: string
}

export function sentencesOf({ line, text }: Block): Sentence[] {
  return text
    .split(/(?<=[.!?]['")]*) /)
    .map((sentence) => ({ line, text: sentence, words: wordsOf(sentence) }))
    .filter(({ words }) => words > 0)
}

export function wordsOf(text: string): number {
  return text.split(' ').filter((word) => /\w/.test(word)).length
}
