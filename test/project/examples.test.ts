import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

interface Example {
  where: string
  code: string
}

/** The `ts` blocks of a text; in doc comments, the comment's stars are taken off. */
function examplesIn(file: string): Example[] {
  const text = readFileSync(join(root, file), 'utf8')
  return [...text.matchAll(/^([ \t]*(?:\* )?)```ts\n([\s\S]*?)```/gm)].map((match) => ({
    where: `${file}:${text.slice(0, match.index).split('\n').length}`,
    code: (match[2] ?? '').replace(/^[ \t]*\*(?: |$)/gm, ''),
  }))
}

function filesIn(folder: string, ending: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith(ending)).map((name) => join(folder, name))
}

it('every example in the README, the docs and the doc comments compiles', () => {
  const files = ['README.md', 'CONTRIBUTING.md', ...filesIn('docs', '.md'), ...filesIn('src', '.ts')]
  const examples = files.flatMap(examplesIn)
  expect(examples.length).toBeGreaterThan(10)

  const folder = join(root, '.cache/examples')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  examples.forEach(({ where, code }, index) => {
    writeFileSync(join(folder, `example-${index}.ts`), `// ${where}\n${code}\nexport {}\n`)
  })
  const compilerOptions = { noEmit: true, rootDir: root, noUnusedLocals: false, noUnusedParameters: false }
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: '../../tsconfig.json', compilerOptions, include: ['*.ts'] }),
  )
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { output, isFine } = run(process.execPath, [tsc, '-p', folder])
  const explained = output.replace(
    /example-(\d+)\.ts/g,
    (name, index) => `${name} (${examples[Number(index)]?.where})`,
  )
  expect(isFine, explained).toBe(true)
})

function run(command: string, args: string[]): { output: string; isFine: boolean } {
  try {
    return { output: execFileSync(command, args, { encoding: 'utf8' }), isFine: true }
  } catch (error) {
    return { output: String((error as { stdout?: string }).stdout ?? error), isFine: false }
  }
}
