import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
/** Inside the package, so that `import 'holdfast'` leads to its own build. */
const folder = join(root, `.cache/examples-${process.pid}`)
/** Only ends what hangs: an example that waits for ever teaches nothing. */
const HANGS_AFTER_MS = 30_000

interface Example {
  where: string
  code: string
  /** Its fence says `ts run`: it is also executed. */
  isRun: boolean
  /** The `text` block right behind it: what it prints. */
  output: string | undefined
}

/** NestJS needs the decorators of `experimentalDecorators`; all others have the standard ones. */
const KINDS = {
  standard: {},
  legacy: { experimentalDecorators: true, emitDecoratorMetadata: true },
}
type Kind = keyof typeof KINDS

function kindOf({ code }: Example): Kind {
  return /from '(?:@nestjs\/|holdfast\/nestjs)/.test(code) ? 'legacy' : 'standard'
}

/** The `ts` blocks of a text; in doc comments, the comment's stars are taken off. */
function examplesIn(file: string): Example[] {
  const text = readFileSync(join(root, file), 'utf8')
  const blocks = /^[ \t]*(?:\* )?```ts( run)?\n([\s\S]*?)```(?:\s*```text\n([\s\S]*?)```)?/gm
  return [...text.matchAll(blocks)].map((match) => ({
    where: `${file}:${text.slice(0, match.index).split('\n').length}`,
    code: (match[2] ?? '').replace(/^[ \t]*\*(?: |$)/gm, ''),
    isRun: match[1] !== undefined,
    output: match[3],
  }))
}

function filesIn(folder: string, ending: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith(ending)).map((name) => join(folder, name))
}

const pages = ['README.md', 'CONTRIBUTING.md', ...filesIn('docs', '.md')]
const examples = [...pages, ...filesIn('src', '.ts')].flatMap(examplesIn)
/** The pages that the doc comments send their readers to. */
const namedPages = new Set(
  [...readFileSync(join(root, 'src/primitives/holdfast.ts'), 'utf8').matchAll(/`(docs\/[\w-]+\.md)`/g)].map(
    (match) => match[1] ?? '',
  ),
)

describe('the examples in the README, the docs and the doc comments', () => {
  const compiled: Outcome[] = []

  beforeAll(async () => {
    for (const kind of Object.keys(KINDS) as Kind[]) {
      const sources = join(folder, kind)
      mkdirSync(sources, { recursive: true })
      examples.forEach((example, index) => {
        if (kindOf(example) !== kind) return
        const text = `// ${example.where}\n${example.code}\nexport {}\n`
        writeFileSync(join(sources, `example-${index}.ts`), text)
      })
      const compilerOptions = {
        ...KINDS[kind],
        noEmit: false,
        declaration: false,
        sourceMap: false,
        rootDir: sources,
        outDir: join(folder, 'out'),
        noUnusedLocals: false,
        noUnusedParameters: false,
      }
      const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['*.ts'] }
      writeFileSync(join(sources, 'tsconfig.json'), JSON.stringify(config))
      compiled.push(await node([join(root, 'node_modules/typescript/bin/tsc'), '-p', sources]))
    }
  })

  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('compile', () => {
    expect(examples.length).toBeGreaterThan(10)
    const explained = compiled
      .map(({ output }) => output)
      .join('')
      .replace(/example-(\d+)\.ts/g, (name, index) => `${name} (${examples[Number(index)]?.where})`)
    expect(
      compiled.map(({ isFine }) => isFine),
      explained,
    ).toEqual([true, true])
  })

  const runnable = [...examples.entries()].filter(([, { isRun }]) => isRun)
  it.each(runnable.map(([index, example]) => ({ index, ...example })))(
    '$where runs to its end',
    async ({ index, output: expected }) => {
      const { output, isFine } = await node([join(folder, `out/example-${index}.js`)])
      expect(isFine, output).toBe(true)
      if (expected !== undefined) expect(output).toBe(expected)
    },
  )

  it.each([...namedPages, 'docs/mutex.md'])('%s has one that runs, with what it prints', (page) => {
    const runs = examplesIn(page).filter(({ isRun, output }) => isRun && output !== undefined)
    expect(runs.length).toBeGreaterThan(0)
  })
})

interface Outcome {
  output: string
  isFine: boolean
}

function node(args: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    const limits = { encoding: 'utf8', timeout: HANGS_AFTER_MS, killSignal: 'SIGKILL' } as const
    execFile(process.execPath, args, limits, (error, stdout, stderr) =>
      resolve({ output: stdout + stderr, isFine: error === null }),
    )
  })
}
