import { execFile } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe } from 'vitest'
import { frameworkFolder, missingFramework } from '../../scripts/frameworks.mjs'
import { unpackInto } from '../consumers/project.js'
import { root } from '../project/sources.js'

const run = promisify(execFile)

/** `describe` for `npm run test:frameworks`; elsewhere its tests are skipped, with the reason. */
export function describeInstalled(name: string, title: string, body: () => void): void {
  const isWanted = process.env['HOLDFAST_TEST_FRAMEWORKS'] === 'all'
  const reason = isWanted ? missingFramework(name) : 'npm run test:frameworks runs it'
  describe.skipIf(reason !== null)(reason === null ? title : `${title} (skipped: ${reason})`, body)
}

/**
 * A project with a large framework and the packed library, in the folder of its packages. `part`:
 * in a folder below it, where several projects use the same packages.
 */
export class InstalledProject {
  readonly folder: string

  constructor(name: string, part = '') {
    this.folder = join(frameworkFolder(name), part)
  }

  async prepare(files: Record<string, string>): Promise<void> {
    await unpackInto(this.folder)
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.folder, name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, content)
    }
  }

  remove(...names: string[]): void {
    for (const name of names) rmSync(join(this.folder, name), { recursive: true, force: true })
  }

  /** Checks the types of the files, and writes their JavaScript beside them. */
  async compile(...files: string[]): Promise<void> {
    const compilerOptions = {
      target: 'es2023',
      module: 'nodenext',
      rewriteRelativeImportExtensions: true,
      strict: true,
      skipLibCheck: true,
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
    }
    const config = JSON.stringify({ compilerOptions, files })
    writeFileSync(join(this.folder, 'tsconfig.recipe.json'), config)
    await this.run(join(root, 'node_modules/typescript/bin/tsc'), ['-p', 'tsconfig.recipe.json'])
  }

  /** Runs a program of Node, and fails with what it prints. */
  async run(file: string, args: string[], env: Record<string, string> = {}): Promise<void> {
    const { NODE_OPTIONS: _options, VITEST: _vitest, NODE_ENV: _env, ...own } = process.env
    const options = { cwd: this.folder, env: { ...own, ...env } }
    await run(process.execPath, [file, ...args], options).catch((error) => {
      throw new Error(`${file}: ${error.stdout}${error.stderr}`)
    })
  }
}
