import { describe, expect, it } from 'vitest'
import { sourceOf, sourcesIn } from './sources.js'

describe('taking a source apart', () => {
  it('finds comments and strings with their lines, also inside each other', () => {
    const { passages } = sourceOf(
      'a.ts',
      [
        '// one',
        "const a = 'two // no comment'",
        '/** three',
        ' * four */',
        `b(\`five \${c("six")} seven\`)`,
      ].join('\n'),
    )
    expect(passages).toEqual([
      { kind: 'comment', line: 1, text: '// one' },
      { kind: 'string', line: 2, text: 'two // no comment' },
      { kind: 'comment', line: 3, text: '/** three\n * four */' },
      { kind: 'string', line: 5, text: 'six' },
      { kind: 'string', line: 5, text: `five \${} seven` },
    ])
  })

  it('tells a regular expression from a division', () => {
    const { code } = sourceOf('a.ts', "const a = /['\"]/.test(b) ? c / d : e / f // '")
    expect(code.trimEnd()).toBe('const a =       .test(b) ? c / d : e / f')
  })

  it('leaves no quote and no comment in the code of any file', () => {
    for (const { path, text, code } of [...sourcesIn('src'), ...sourcesIn('test')]) {
      expect(code.length, path).toBe(text.length)
      expect(/['"`]|\/\*|\/\//.exec(code)?.[0], path).toBeUndefined()
    }
  })
})
