import { describe, expect, it } from 'vitest'
import { blocksOf, type Page, pagesForUsers, sentencesOf, withoutCode, wordsOf } from './pages.js'
import { expectNone, lineAt } from './sources.js'
import { MOST_COLUMNS, MOST_WORDS, oddWordsIn } from './words.js'

const LONGEST_SENTENCE = 35
const LONGEST_CELL = 25
/** Odd in a page, beside what is odd everywhere. */
const ODD_IN_PAGES = ['for ever', 'anew', 'stands? in line', 'keeps? silent']

type Rule = (page: Page) => string[]

const RULES: Readonly<Record<string, Rule>> = {
  'short sentences on average': longAverage,
  'no long sentence': longSentences,
  'short table cells': longCells,
  'wrapped lines': wideLines,
  'no odd words': oddWords,
}

function longAverage(page: Page): string[] {
  const sentences = proseOf(page)
  const words = sentences.reduce((sum, sentence) => sum + sentence.words, 0)
  const average = words / Math.max(1, sentences.length)
  return average <= MOST_WORDS ? [] : [`${page.path}: ${average.toFixed(1)} words in an average sentence`]
}

function longSentences(page: Page): string[] {
  return proseOf(page)
    .filter(({ words }) => words > LONGEST_SENTENCE)
    .map(({ line, words, text }) => `${page.path}:${line}: ${words} words: ${text.slice(0, 60)}…`)
}

function proseOf(page: Page): ReturnType<typeof sentencesOf> {
  return blocksOf(page)
    .filter(({ kind }) => kind === 'prose')
    .flatMap(sentencesOf)
}

function longCells(page: Page): string[] {
  return blocksOf(page)
    .filter(({ kind, text }) => kind === 'cell' && wordsOf(text) > LONGEST_CELL)
    .map(({ line, text }) => `${page.path}:${line}: ${wordsOf(text)} words: ${text.slice(0, 60)}…`)
}

/** Tables and code cannot be wrapped, nor can a link or a piece of code that is wider than a line. */
function wideLines({ path, text }: Page): string[] {
  return withoutCode(text)
    .split('\n')
    .map((line, index) => ({ line, number: index + 1 }))
    .filter(({ line }) => line.length > MOST_COLUMNS && !line.startsWith('|') && canBeWrapped(line))
    .map(({ line, number }) => `${path}:${number}: ${line.length} columns`)
}

function canBeWrapped(line: string): boolean {
  const pieces = line.trim().replace(/`[^`]*`|\]\([^)]*\)/g, (atom) => 'x'.repeat(atom.length))
  return pieces.split(' ').every((piece) => piece.length < MOST_COLUMNS / 2)
}

/** Also in code: its comments are read with the page. */
function oddWords({ path, text }: Page): string[] {
  return oddWordsIn(text, ODD_IN_PAGES).map(({ index, words }) => `${path}:${lineAt(text, index)}: ${words}`)
}

describe('the pages for users', () => {
  const pages = pagesForUsers()

  it.each(Object.entries(RULES))('have %s', (_name, rule) => {
    expectNone(
      pages.flatMap(rule),
      `Write as in docs/mutex.md: at most ${MOST_WORDS} words in an average sentence, ${LONGEST_SENTENCE} in any, ${LONGEST_CELL} in a table cell, ${MOST_COLUMNS} columns:`,
    )
  })
})

describe('the checks of pages', () => {
  const page = (...lines: string[]): Page => ({ path: 'a.md', text: `${lines.join('\n')}\n` })
  const words = (count: number): string => `${'word '.repeat(count).trim()}.`

  it('count the words of paragraphs and items, not of code, headings and tables', () => {
    const planted = page(
      `# ${words(40)}`,
      '',
      'One `a b c` three',
      'four. Five [six seven](b.md#c), *eight*!',
      '',
      '- Nine.',
      '  Ten eleven.',
      '1. Twelve.',
      '',
      '```ts',
      words(40),
      '```',
      '',
      `    ${words(40)}`,
      '',
      `| ${words(20)} | b |`,
      '| --- | --- |',
    )
    const found = proseOf(planted).map(({ line, words: count }) => `${line}: ${count}`)
    expect(found).toEqual(['3: 4', '3: 4', '6: 1', '6: 2', '8: 1'])
  })

  it('notice sentences that are too long', () => {
    expect(longAverage(page(words(19)))).toEqual(['a.md: 19.0 words in an average sentence'])
    expect(longAverage(page(words(18)))).toEqual([])
    expect(longSentences(page('Short.', '', words(36)))).toHaveLength(1)
    expect(longSentences(page(words(35)))).toEqual([])
  })

  it('notice table cells that are too long', () => {
    const planted = page('| a | b |', '| --- | --- |', `| ${words(26)} | \`a | b\` |`, `| ${words(25)} | b |`)
    expect(longCells(planted).map((finding) => finding.slice(0, 16))).toEqual(['a.md:3: 26 words'])
  })

  it('notice lines that are too wide, except tables, code, and what cannot be wrapped', () => {
    const long = 'x '.repeat(51)
    const planted = page(
      long,
      `| ${long}|`,
      `[a](https://${'x'.repeat(90)})`,
      '',
      '```',
      long,
      '```',
      '',
      `    ${long}`,
    )
    expect(wideLines(planted)).toEqual(['a.md:1: 102 columns'])
  })

  it('notice odd words, also across lines and in code', () => {
    const planted = page('It is not to', 'be had, made anew.', '```ts', '// Whoever comes.', '```')
    expect(oddWords(planted)).toEqual(['a.md:1: to be had', 'a.md:2: anew', 'a.md:4: Whoever'])
  })
})
