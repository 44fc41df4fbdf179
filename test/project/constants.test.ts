import { expect, it } from 'vitest'
import * as constants from '../../src/contract/constants.js'
import { expectNone, lineAt, type Passage, type Source, sourceOf, sourcesIn } from './sources.js'

const IS_STATEMENT = /\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|BEGIN|DECLARE)\b|redis\.call/

/**
 * Each constant as a server would be told it: also in microseconds, as the next number, and with
 * underscores.
 */
function literalsOf(name: string, value: number): [literal: string, name: string][] {
  const values = name.endsWith('_MS') ? [value, value * 1000] : [value, value + 1]
  return values.map((each) => [String(each), name])
}

const NAMES = new Map(Object.entries(constants).flatMap(([name, value]) => literalsOf(name, value)))
// 2^53 is not a safe integer, but it is what people write.
NAMES.set('9007199254740992', 'HIGHEST_FENCE')

/** Lua and SQL that write a number of src/contract/constants.ts themselves. */
function literalsIn(sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, passages }) =>
    passages
      .filter((passage) => passage.kind === 'string' && isStatement(path, passage))
      .flatMap(({ line, text }) =>
        [...withoutComments(text).matchAll(/(?<![\w.])\d[\d_]*(?![\w.])/g)].flatMap(
          ({ 0: literal, index }) => {
            const name = NAMES.get(literal.replaceAll('_', ''))
            return name ? [`${path}:${line + lineAt(text, index) - 1}: ${literal} is ${name}`] : []
          },
        ),
      ),
  )
}

function isStatement(path: string, { text }: Passage): boolean {
  return /\/(?:lua|sql)\//.test(path) || IS_STATEMENT.test(text)
}

function withoutComments(text: string): string {
  return text.replace(/--[^\n]*/g, (comment) => ' '.repeat(comment.length))
}

it('Lua and SQL get the numbers that all stores agree on by interpolation', () => {
  expectNone(
    literalsIn(sourcesIn('src/stores')),
    'Insert the constant of src/contract/constants.ts, or a constant with a name of its own where it only happens to be the same number:',
  )
})

it('a number that is written out is noticed', () => {
  const lua = [
    'local FAR = 9007199254740991',
    'local SKEW_US = 60000000',
    '-- 60000 in a comment',
    'x = 160000',
  ]
  const planted = [
    sourceOf('src/stores/redis/lua/a.ts', `export const lua = \`\n${lua.join('\n')}\n\``),
    sourceOf(
      'src/stores/sqlite/rows.ts',
      "const SQL = 'SELECT 1073741824 WHERE a < 1'\nconst text = 'in 60000 ms'",
    ),
  ]
  expect(literalsIn(planted)).toEqual([
    'src/stores/redis/lua/a.ts:2: 9007199254740991 is HIGHEST_FENCE',
    'src/stores/redis/lua/a.ts:3: 60000000 is FLOOR_SKEW_MS',
    'src/stores/sqlite/rows.ts:1: 1073741824 is EXCLUSIVE',
  ])
})
