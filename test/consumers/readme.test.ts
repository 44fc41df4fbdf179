import { mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { recipeOf } from '../frameworks/recipes.js'
import { Project } from './project.js'

const root = join(import.meta.dirname, '../..')
const main = 'node_modules/holdfast/dist/cjs/cli/main.js'

/** `lock.mjs` as the page has it, but with shorter work. */
const LOCK = recipeOf('README.md', '## A working lock in a minute', { change: { '5000': '200' } })
const [IMPORTS = '', BODY = ''] = LOCK.split(/\n\n(.*)/s)
const IN_A_FUNCTION = `async function main() {\n${BODY}}\nmain()\n`
const REQUIRES = IMPORTS.replace(/import (.*) from (.*)/g, 'const $1 = require($2)')

/** What a process does with the lock. Node may also warn that its SQLite is experimental. */
function eventsIn(output: string): { pid: string; event: string }[] {
  const found = output.matchAll(/^(\d+) (works|is done)/gm)
  return Array.from(found, ([, pid = '', event = '']) => ({ pid, event }))
}

function expectOneLock(output: string): void {
  expect(
    eventsIn(output).map(({ event }) => event),
    output,
  ).toEqual(['works', 'is done'])
}

describe('the first steps of the README, with the packed library', () => {
  let project: Project

  beforeAll(async () => {
    project = await Project.make({ 'lock.mjs': LOCK, 'lock.cjs': `${REQUIRES}\n${IN_A_FUNCTION}` })
    // As after `npm install libsql @types/node`.
    for (const name of ['libsql', '@types/node']) {
      const link = join(project.folder, 'node_modules', name)
      mkdirSync(dirname(link), { recursive: true })
      symlinkSync(join(root, 'node_modules', name), link)
    }
  })

  it('two processes work one after the other', async () => {
    const command = `"${process.execPath}" lock.mjs & "${process.execPath}" lock.mjs; wait`
    const { code, output } = await project.run('sh', ['-c', command])
    expect(code, output).toBe(0)
    const [first, done, second, end] = eventsIn(output)
    expect(done).toEqual({ pid: first?.pid, event: 'is done' })
    expect(end).toEqual({ pid: second?.pid, event: 'is done' })
    expect(second?.pid).not.toBe(first?.pid)
  })

  it('works in CommonJS, inside an async function', async () => {
    const { code, output } = await project.node('lock.cjs')
    expect(code, output).toBe(0)
    expectOneLock(output)
  })

  it.each([
    { module: 'nodenext', type: 'module', code: LOCK },
    { module: 'commonjs', type: 'commonjs', code: `${IMPORTS}\n${IN_A_FUNCTION}` },
  ])('works in TypeScript, with module $module', async ({ module, type, code: source }) => {
    const folder = `ts-${module}`
    project.write({
      [`${folder}/package.json`]: { private: true, type },
      [`${folder}/tsconfig.json`]: { compilerOptions: { module, types: ['node'] } },
      [`${folder}/lock.ts`]: source,
    })
    expect(await project.tsc('-p', folder)).toEqual({ code: 0, output: '' })
    const { code, output } = await project.node(`${folder}/lock.js`)
    expect(code, output).toBe(0)
    expectOneLock(output)
  })

  it('the commands: run, ls and doctor', async () => {
    project.write({ 'report.sh': '#!/bin/sh\necho "reporting under $HOLDFAST_RESOURCE"\n' })
    const store = ['--store', 'sqlite:./locks.db']
    const command = ['--', 'sh', './report.sh']
    const ran = await project.node(main, 'run', 'nightly', '--wait', '10s', ...store, ...command)
    expect(ran).toMatchObject({ code: 0, output: expect.stringContaining('reporting under nightly\n') })
    const listed = await project.node(main, 'ls', ...store)
    expect(listed).toMatchObject({ code: 0, output: expect.stringContaining('Nothing is held') })
    const checked = await project.node(main, 'doctor', ...store)
    expect(checked).toMatchObject({ code: 0, output: expect.stringContaining('locks.db is sound') })
  })
})
