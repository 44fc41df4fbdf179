import { expect, it } from 'vitest'
import { expectNone, lineAt, type Source, sourceOf, sourcesIn } from './sources.js'

const DECLARED = /^export (?:default )?(?:declare )?(?:abstract )?(?:class|interface) (\w+)/gm

/** The Web Locks standard, and the package redlock, give these their names. */
const GIVEN = [
  { folder: 'src/web-locks/', names: ['Lock', 'LockOptions'] },
  { folder: 'src/redlock/', names: ['Lock'] },
]

/**
 * Names with more than one exported class or interface. A re-export declares nothing, so it does
 * not count.
 */
function namesOfTwo(sources: readonly Source[]): string[] {
  const places = new Map<string, string[]>()
  for (const { path, code } of sources)
    for (const { 1: name = '', index } of code.matchAll(DECLARED))
      if (!isGiven(path, name))
        places.set(name, [...(places.get(name) ?? []), `${path}:${lineAt(code, index)}`])
  return [...places]
    .filter(([, where]) => new Set(where.map((place) => place.split(':')[0])).size > 1)
    .map(([name, where]) => `${where[0]}: ${name} is also declared in ${where.slice(1).join(' and ')}`)
    .sort()
}

function isGiven(path: string, name: string): boolean {
  return GIVEN.some(({ folder, names }) => path.startsWith(folder) && names.includes(name))
}

it('no two exported classes or interfaces share a name', () => {
  expectNone(namesOfTwo(sourcesIn('src')), 'Give each exported class or interface a name of its own:')
})

it('a second class or interface of a name is noticed', () => {
  const one = sourceOf('src/a.ts', 'const a = 1\nexport class Line {}\n')
  const other = sourceOf('src/b.ts', 'export interface Line {}\n')
  const again = sourceOf('src/c.ts', "export { Line } from './a.js'\nexport class Queue {}\n")
  expect(namesOfTwo([one, again])).toEqual([])
  expect(namesOfTwo([one, other, again])).toEqual(['src/a.ts:2: Line is also declared in src/b.ts:1'])
})
