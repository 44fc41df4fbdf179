import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { pageOf } from '../project/pages.js'
import { root } from '../project/sources.js'

/** A program of a page, under the heading above it. */
interface Recipe {
  readonly heading: string
  readonly code: string
}

/** The programs of a page: its `ts` blocks, or those of another project (`ts prisma`). */
export function recipesOf(page: string, language = 'ts'): Recipe[] {
  const sections = pageOf(page).text.split(/^(?=##+ )/m)
  return sections.flatMap((section) => {
    const heading = section.slice(0, section.indexOf('\n'))
    const blocks = section.matchAll(/^```([^\n]*)\n([\s\S]*?)^```/gm)
    return Array.from(blocks)
      .filter(([, found = '']) => found === language)
      .map(([, , code = '']) => ({ heading, code }))
  })
}

/** The program under a heading of a page; for `change` see `compileRecipes`. */
export function recipeOf(
  page: string,
  heading: string,
  { language = 'ts', change = {} }: { language?: string; change?: Record<string, string> } = {},
): string {
  const found = recipesOf(page, language).find((recipe) => recipe.heading === heading)
  if (!found) throw new Error(`no recipe under ${heading} of ${page}`)
  return changed(found.code, change, `${heading} of ${page}`)
}

function changed(code: string, change: Record<string, string>, place: string): string {
  let result = code
  for (const [from, to] of Object.entries(change)) {
    if (!result.includes(from)) throw new Error(`${place} has no ${from}`)
    result = result.replaceAll(from, to)
  }
  return result
}

/** The languages of the programs of a page: `ts`, or `ts` with the project that runs it. */
export function languagesOf(page: string): string[] {
  return [...new Set(Array.from(pageOf(page).text.matchAll(/^```(tsx?\b.*)$/gm), ([, found = '']) => found))]
}

const folders: string[] = []
// Here, because vitest ignores an `afterAll` that a hook declares.
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** A folder inside the package, so that `import 'holdfast'` leads to its own build. */
function cacheFolder(): string {
  mkdirSync(join(root, '.cache'), { recursive: true })
  const folder = mkdtempSync(join(root, '.cache/recipe-'))
  folders.push(folder)
  return folder
}

/**
 * Compiles the programs of a page as a reader would, with the decorators that NestJS needs. Returns
 * their JavaScript by heading. `change` replaces addresses and times, and nothing else.
 */
export function compileRecipes(page: string): (heading: string, change?: Record<string, string>) => string {
  const folder = cacheFolder()
  const recipes = recipesOf(page)
  for (const [index, { code }] of recipes.entries())
    writeFileSync(join(folder, `recipe-${index}.ts`), `${code}\nexport {}\n`)
  const compilerOptions = {
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    noEmit: false,
    declaration: false,
    sourceMap: false,
    rootDir: folder,
    outDir: folder,
  }
  const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['*.ts'], exclude: [] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  execFileSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8', stdio: 'pipe' })
  let copies = 0
  return (heading, change = {}) => {
    const index = recipes.findIndex((recipe) => recipe.heading === heading)
    if (index < 0) throw new Error(`no recipe under ${heading} of ${page}`)
    const code = readFileSync(join(folder, `recipe-${index}.js`), 'utf8')
    const file = join(folder, `run-${index}-${copies++}.mjs`)
    writeFileSync(file, changed(code, change, `${heading} of ${page}`))
    return file
  }
}
