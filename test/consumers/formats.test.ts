import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { Project } from './project.js'

const root = join(import.meta.dirname, '../..')
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const entries = Object.keys(exports)
  .filter((name) => name !== './package.json')
  .map((name) => `holdfast${name.slice(1)}`)

describe('a project without any tools', () => {
  let project: Project

  beforeAll(async () => {
    project = await Project.make({
      'both.mjs': `
        import { createRequire } from 'node:module'
        import { Holdfast, HoldfastError } from 'holdfast'
        import { memory } from 'holdfast/memory'
        const require = createRequire(import.meta.url)
        const other = require('holdfast')
        const otherMemory = require('holdfast/memory').memory
        if (other.HoldfastError !== HoldfastError) throw new Error('two classes of errors')
        if (other.Holdfast !== Holdfast || otherMemory !== memory) throw new Error('two copies')
        // One memory store, and one async context: what one format holds, the other one sees and enters again.
        const locks = new Holdfast(memory())
        await locks.mutex('a').run(async (hold) => {
          const again = await locks.mutex('a').run((inner) => inner.fence)
          if (again !== hold.fence) throw new Error('not entered again')
        })
        const ours = await Holdfast.open('memory:shared')
        const theirs = await other.Holdfast.open('memory:shared')
        await ours.mutex('b').run(async () => {
          if ((await theirs.mutex('b').tryAcquire()) !== null) throw new Error('two holders')
        })
        await Promise.all([locks, ours, theirs].map((each) => each.close()))
        console.log('one of each')`,
      'all.mjs': `
        import { createRequire } from 'node:module'
        const require = createRequire(import.meta.url)
        for (const entry of ${JSON.stringify(entries)}) {
          const imported = Object.entries(await import(entry)).sort()
          const required = Object.entries(require(entry)).sort()
          if (imported.length === 0) throw new Error(entry + ' is empty')
          if (String(imported.map(([name]) => name)) !== String(required.map(([name]) => name)))
            throw new Error(entry + ' differs')
          for (const [index, [name, value]] of imported.entries())
            if (required[index][1] !== value) throw new Error(entry + ' has two of ' + name)
        }
        console.log('all the same')`,
      'plain.cjs': `
        const { Holdfast } = require('holdfast')
        const { memory } = require('holdfast/memory')
        const locks = new Holdfast(memory())
        locks.mutex('a').run(() => 'inside').then(console.log).then(() => locks.close())`,
    })
  })

  it('requires it', async () => {
    expect(await project.node('plain.cjs')).toEqual({ code: 0, output: 'inside\n' })
  })

  it('requires and imports it in one process, and gets one copy', async () => {
    expect(await project.node('both.mjs')).toEqual({ code: 0, output: 'one of each\n' })
  })

  it('gets the same from every entry point, required or imported', async () => {
    expect(await project.node('--disable-warning=ExperimentalWarning', 'all.mjs')).toEqual({
      code: 0,
      output: 'all the same\n',
    })
  })

  it('finds every page that another page leads to', () => {
    const library = join(project.folder, 'node_modules/holdfast')
    const pages = readdirSync(library, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.md') && !path.startsWith('dist'))
      .map((path) => ({ path, text: readFileSync(join(library, path), 'utf8') }))
    expect(pages.length).toBeGreaterThan(50)
    const dead = pages.flatMap(({ path, text }) =>
      Array.from(text.matchAll(/\]\((?![a-z]+:)([^)#\s]+)/g), ([, to = '']) => to)
        .filter((to) => !existsSync(join(library, dirname(path), to)))
        .map((to) => `${path}: ${to}`),
    )
    expect(dead).toEqual([])
  })

  it('runs the command line', async () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const main = 'node_modules/holdfast/dist/cjs/cli/main.js'
    expect(await project.node(main, '--version')).toEqual({ code: 0, output: `${version}\n` })
  })
})

/** What users write, with everything that needs the declarations of the disposable library. */
const USE = `
import { Holdfast, HoldfastError } from 'holdfast'
import { memory } from 'holdfast/memory'
import { LockManager } from 'holdfast/web-locks'
import { mysql } from 'holdfast/mysql'
import { postgres } from 'holdfast/postgres'
import { redis } from 'holdfast/redis'
import { sqlite } from 'holdfast/sqlite'

export async function use(): Promise<number> {
  const locks = new Holdfast(memory())
  try {
    const hold = await locks.mutex('a').acquire({ wait: '5s' })
    const fence: number = hold.fence
    await hold[Symbol.asyncDispose]()
    return fence
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'ACQUIRE_TIMEOUT') return 0
    throw error
  }
}
export const others = [LockManager, mysql, postgres, redis, sqlite]
`

describe('TypeScript, without types of Node', () => {
  // By default, TypeScript 7 looks at no types but those that are imported.
  const settings = [
    { module: 'commonjs', moduleResolution: 'bundler', type: 'commonjs' },
    { module: 'node16', moduleResolution: 'node16', type: 'commonjs' },
    { module: 'node16', moduleResolution: 'node16', type: 'module' },
    { module: 'nodenext', moduleResolution: 'nodenext', type: 'commonjs' },
    { module: 'nodenext', moduleResolution: 'nodenext', type: 'module' },
    { module: 'esnext', moduleResolution: 'bundler', type: 'module' },
  ]

  it.each(settings)('compiles with $module in a package of type $type', async ({ type, ...options }) => {
    const compilerOptions = { ...options, target: 'es2022', strict: true, types: [], outDir: 'out' }
    const project = await Project.make({
      'package.json': { private: true, type },
      'use.ts': USE,
      'tsconfig.json': { compilerOptions, include: ['use.ts'] },
    })
    expect(await project.tsc('-p', '.')).toEqual({ code: 0, output: '' })
  })
})
