import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const dist = join(import.meta.dirname, '../../dist/cjs')

interface Exported {
  name: string
  file: string
}

/** What `import … from 'holdfast'` gives, by the declarations that an editor reads. */
function exported(): Exported[] {
  const index = readFileSync(join(dist, 'index.d.ts'), 'utf8')
  return [...index.matchAll(/export (?:type )?\{([^}]*)\} from '(.*)\.js'/g)].flatMap(
    ([, names = '', module]) =>
      names.split(',').map((name) => ({ name: name.replace('type', '').trim(), file: `${module}.d.ts` })),
  )
}

const TOP = /^export (?:declare )?(?:class|interface|type) (\w+)/
const MEMBER =
  /^ +(?!private |constructor\(|#)(?:(?:static|readonly|get|protected) )*([\w[\].]+)\??(?:<.*>)?[(:]/

/** The declaration of that name, and those of its members that no comment stands over. */
function unexplained({ name, file }: Exported): string[] {
  const lines = readFileSync(join(dist, file), 'utf8').split('\n')
  let current: string | undefined
  return lines.flatMap((line, index) => {
    const top = TOP.exec(line)
    current = top?.[1] ?? (/^\w/.test(line) ? undefined : current)
    const isDeclared = top !== null || MEMBER.test(line)
    if (current !== name || !isDeclared || lines[index - 1]?.trimEnd().endsWith('*/')) return []
    return [`${name} in ${file}: ${line.trim()}`]
  })
}

it('every public type, option, member and method explains itself on hover', () => {
  const all = exported()
  expect(all.map(({ name }) => name)).toContain('HoldfastOptions')
  expect(all.flatMap(unexplained)).toEqual([])
})
