import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect } from 'vitest'

export const root = join(import.meta.dirname, '../..')

/** A comment or a string: its text without the marks around it, and the line on which it begins. */
export interface Passage {
  readonly kind: 'comment' | 'string'
  readonly line: number
  readonly text: string
}

/** A TypeScript file, taken apart. */
export interface Source {
  /** From the root of the project. */
  readonly path: string
  readonly text: string
  /** The text with comments and strings blanked out, so that a search in it finds code only. */
  readonly code: string
  readonly passages: readonly Passage[]
}

/** The TypeScript files below a folder of the project. */
export function sourcesIn(folder: string): Source[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .sort()
    .map((file) => {
      const path = join(root, folder, file)
      return sourceOf(relative(root, path), readFileSync(path, 'utf8'))
    })
}

export function sourceOf(path: string, text: string): Source {
  const scanner = new Scanner(text)
  scanner.code('')
  return { path, text, code: scanner.blanked.join(''), passages: scanner.passages }
}

export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length
}

/** Fails with one line for each finding: `src/a.ts:12: what is wrong`. */
export function expectNone(findings: readonly string[], advice: string): void {
  if (findings.length > 0) expect.fail(`${advice}\n${findings.join('\n')}`)
}

/**
 * After these a slash begins a regular expression; after a name, a number or a bracket that closes,
 * it divides.
 */
const BEFORE_REGEX = /(?:^|[=(,;:[{}!&|?+\-*%~^<>]|\b(?:return|typeof|case|in|of|await|yield))\s*$/

const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//y
const QUOTED = /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y
const REGEX = /\/(?![*/])(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/y

/**
 * Finds where comments, strings and regular expressions begin and end. Not a parser, but enough for
 * formatted code.
 */
class Scanner {
  readonly passages: Passage[] = []
  /** One entry for each character that was read. */
  readonly blanked: string[] = []
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  /** Reads code up to the end of the text, or up to the brace that closes the `${` it stands in. */
  code(end: '' | '}'): void {
    let depth = 0
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at]
      if (char === '}' && depth-- === 0 && end === '}') return
      if (char === '{') depth++
      if (char === '`') this.#template()
      else if (!this.#comment() && !this.#quoted() && !this.#regex()) this.#keep()
    }
  }

  #comment(): boolean {
    const found = this.#match(COMMENT)
    if (found === null) return false
    this.#pass('comment', this.#at, found)
    this.#blank(found.length)
    return true
  }

  #quoted(): boolean {
    const found = this.#match(QUOTED)
    if (found === null) return false
    this.#pass('string', this.#at, found.slice(1, -1))
    this.#blank(found.length)
    return true
  }

  #regex(): boolean {
    if (this.#text[this.#at] !== '/') return false
    if (!BEFORE_REGEX.test(this.blanked.slice(-80).join(''))) return false
    const found = this.#match(REGEX)
    if (found === null) return false
    this.#blank(found.length)
    return true
  }

  /** What is inserted is code again, and stands in the text of the string as `${}`. */
  #template(): void {
    const start = this.#at
    let text = ''
    this.#blank(1)
    for (let char = this.#text[this.#at]; char !== undefined && char !== '`'; char = this.#text[this.#at]) {
      if (this.#text.startsWith('${', this.#at)) {
        const before = this.#at
        this.#blank(2)
        this.code('}')
        // Its line breaks stay, so that lines can be counted in the text.
        text += `\${${'\n'.repeat(this.#text.slice(before, this.#at).split('\n').length - 1)}}`
        this.#blank(1)
      } else {
        const length = char === '\\' ? 2 : 1
        text += this.#text.slice(this.#at, this.#at + length)
        this.#blank(length)
      }
    }
    this.#blank(1)
    this.#pass('string', start, text)
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at
    return pattern.exec(this.#text)?.[0] ?? null
  }

  #pass(kind: Passage['kind'], start: number, text: string): void {
    this.passages.push({ kind, line: lineAt(this.#text, start), text })
  }

  #keep(): void {
    this.blanked.push(this.#text[this.#at] ?? '')
    this.#at++
  }

  #blank(length: number): void {
    for (const char of this.#text.slice(this.#at, this.#at + length))
      for (let unit = 0; unit < char.length; unit++) this.blanked.push(char === '\n' ? '\n' : ' ')
    this.#at += length
  }
}
