import { describe, expect, it } from 'vitest'
import { expectNone, lineAt, type Passage, type Source, sourceOf, sourcesIn } from './sources.js'
import { MOST_COLUMNS, MOST_WORDS, oddWordsIn } from './words.js'

/**
 * Comments and strings without stars and slashes. Comment lines that follow each other are one
 * passage.
 */
function readable({ passages }: Source): Passage[] {
  const joined: Passage[] = []
  for (const { kind, line, text } of passages) {
    const plain = kind === 'comment' ? withoutMarks(text) : text
    const last = joined.at(-1)
    const follows = text.startsWith('//') && last?.kind === 'comment' && lastLineOf(last) === line - 1
    if (follows) joined[joined.length - 1] = { ...last, text: `${last.text}\n${plain}` }
    else joined.push({ kind, line, text: plain })
  }
  return joined
}

function lastLineOf({ line, text }: Passage): number {
  return line + text.split('\n').length - 1
}

function withoutMarks(comment: string): string {
  return comment.replace(/\*\/$/, '').replace(/^[ \t]*(?:\/\/+|\/\*+|\*)[ \t]?/gm, '')
}

function oddWords(path: string, passages: readonly Passage[]): string[] {
  return passages.flatMap(({ line, text }) =>
    oddWordsIn(text).map(({ words, index }) => `${path}:${line + lineAt(text, index) - 1}: ${words}`),
  )
}

/**
 * Lines with a comment, and comment lines of Lua and SQL, that are too wide. Code in comments is left
 * out, as above, and so are directives to tools.
 */
function wideLines({ path, text, passages }: Source): string[] {
  const lines = text.split('\n')
  const commented = new Set<number>()
  for (const { kind, line, text: passage } of passages) {
    let isExample = false
    for (const [offset, each] of passage.split('\n').entries()) {
      if (/^\s*\*\s*```/.test(each)) isExample = !isExample
      const isCode = isExample || /^\s*\* {4}/.test(each) || each.includes('biome-ignore')
      if ((kind === 'comment' && !isCode) || /^\s*-- /.test(each)) commented.add(line + offset)
    }
  }
  return [...commented]
    .map((line) => ({ line, columns: lines[line - 1]?.length ?? 0 }))
    .filter(({ columns }) => columns > MOST_COLUMNS)
    .map(({ line, columns }) => `${path}:${line}: ${columns} columns`)
}

interface Sentence {
  readonly place: string
  readonly words: number
}

/**
 * The sentences of the comments. Code is left out: examples, and blocks that are indented as in
 * Markdown.
 */
function sentencesOf(source: Source): Sentence[] {
  return readable(source)
    .filter(({ kind }) => kind === 'comment')
    .flatMap(({ line, text }) => {
      const prose = text.replace(/```[\s\S]*?```|^ {4}.*$/gm, (code) => code.replace(/[^\n]+/g, ''))
      let index = 0
      return prose.split(/(?<=[.!?]['")]*)(?=\s)|\n\s*\n|\n(?=\s*[-@])/).flatMap((sentence) => {
        const start = prose.indexOf(sentence, index)
        index = start + sentence.length
        const words = sentence
          .replace(/`[^`]*`|\{@link [^}]*\}/g, 'code')
          .split(/\s+/)
          .filter((word) => /\w/.test(word) && !word.startsWith('@'))
        const firstLine = lineAt(prose, start + sentence.length - sentence.trimStart().length)
        return words.length === 0
          ? []
          : [{ place: `${source.path}:${line + firstLine - 1}`, words: words.length }]
      })
    })
}

/** The longest sentences, if the average of all is too long. */
function tooLong(sentences: readonly Sentence[]): string[] {
  const average = sentences.reduce((sum, { words }) => sum + words, 0) / sentences.length
  if (average < MOST_WORDS) return []
  const longestFirst = [...sentences].sort((a, b) => b.words - a.words)
  return longestFirst.slice(0, 40).map(({ place, words }) => `${place}: ${words} words`)
}

describe('the prose of the sources', () => {
  const sources = sourcesIn('src')

  it('has no odd words, in comments and in strings', () => {
    expectNone(
      sources.flatMap((source) => oddWords(source.path, readable(source))),
      'Say it plainly: subject, verb, object; name the caller, the waiter, the client or the store:',
    )
  })

  it(`has comments of at most ${MOST_COLUMNS} columns`, () => {
    expectNone(sources.flatMap(wideLines), 'Wrap these comments:')
  })

  it(`has fewer than ${MOST_WORDS} words in an average sentence of a comment`, () => {
    expectNone(
      tooLong(sources.flatMap(sentencesOf)),
      `Shorten these comments until the average is below ${MOST_WORDS} words:`,
    )
  })
})

describe('the checks of prose', () => {
  it('notice odd words across lines and marks, and not inside other words', () => {
    const planted = [
      '/**',
      ' * Served by those',
      ' * who wait. The whole.',
      ' */',
      "const a = 'Whoever asks'",
      '// It is not to',
      '// be had.',
      `const whoever = \`maybe it is \${"taking leave"}\``,
    ].join('\n')
    const source = sourceOf('src/a.ts', planted)
    expect(oddWords(source.path, readable(source))).toEqual([
      'src/a.ts:2: those who',
      'src/a.ts:5: Whoever',
      'src/a.ts:6: to be had',
      'src/a.ts:8: taking leave',
    ])
  })

  it('notice comments that are too wide, also in Lua, and leave code alone', () => {
    const long = 'x'.repeat(MOST_COLUMNS)
    const planted = [
      `// ${long}`,
      `const a = '${long}'`,
      'const lua = `',
      `-- ${long}`,
      `local ${long}`,
      '`',
      '/**',
      ' * ```ts',
      ` * ${long}`,
      ' * ```',
      ` *     ${long}`,
      ` * ${long}`,
      ' */',
    ].join('\n')
    expect(wideLines(sourceOf('src/a.ts', planted))).toEqual([
      'src/a.ts:1: 103 columns',
      'src/a.ts:4: 103 columns',
      'src/a.ts:12: 103 columns',
    ])
  })

  it('notice sentences that are too long on average', () => {
    const sentence = `${'word '.repeat(30)}.`
    const one = sourceOf('src/a.ts', `// ${sentence}`)
    const short = sourceOf('src/b.ts', '// Short.\n// Very short.')
    expect(tooLong([one, one, short].flatMap(sentencesOf)).slice(0, 1)).toEqual([])
    expect(tooLong([one, one, one, short].flatMap(sentencesOf)).slice(0, 1)).toEqual(['src/a.ts:1: 30 words'])
  })

  it('count the words of sentences, and not of examples', () => {
    const planted = [
      '/**',
      ' * One two three. One `a b c`',
      ' * three four.',
      ' *',
      ' * @example',
      ' * ```ts',
      ' * const a = 1',
      ' * ```',
      ' */',
      'const a = 1',
      '// Five',
      '// six.',
    ].join('\n')
    expect(sentencesOf(sourceOf('src/a.ts', planted))).toEqual([
      { place: 'src/a.ts:2', words: 3 },
      { place: 'src/a.ts:2', words: 4 },
      { place: 'src/a.ts:11', words: 2 },
    ])
  })
})
