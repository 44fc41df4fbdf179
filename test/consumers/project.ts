import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe } from 'vitest'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')

/** Projects that need packages from the registry are for `npm run test:consumers`. */
const isFull = process.env['HOLDFAST_TEST_CONSUMERS'] === 'all'
export const describeInFull: typeof describe.skip = isFull ? describe : describe.skip

const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-consumer-'))
  folders.push(folder)
  return folder
}

let packed: Promise<string> | undefined

/** The tarball that npm would publish. */
function tarball(): Promise<string> {
  packed ??= (async () => {
    const folder = newFolder()
    const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]
    const { stdout } = await run('npm', args, { cwd: root })
    return join(folder, JSON.parse(stdout)[0].filename)
  })()
  return packed
}

/** Puts the packed library into the node_modules of a folder. */
export async function unpackInto(folder: string): Promise<void> {
  const library = join(folder, 'node_modules/holdfast')
  rmSync(library, { recursive: true, force: true })
  mkdirSync(library, { recursive: true })
  await run('tar', ['xzf', await tarball(), '--strip-components=1', '-C', library])
}

export interface Outcome {
  readonly code: number
  readonly output: string
}

/** A user's project in an empty folder, with the packed library in its node_modules. */
export class Project {
  readonly folder = newFolder()

  /** `packages` come from the registry; without any, nothing is fetched. */
  static async make(files: Record<string, string | object>, packages: string[] = []): Promise<Project> {
    const project = new Project()
    project.write({ 'package.json': { private: true }, ...files })
    if (packages.length > 0) {
      const quiet = ['--no-audit', '--no-fund', '--loglevel=error']
      const { code, output } = await project.run('npm', ['install', ...quiet, await tarball(), ...packages])
      if (code !== 0) throw new Error(`npm install failed: ${output}`)
      return project
    }
    await unpackInto(project.folder)
    // The packages that an entry point imports by itself.
    for (const name of ['@opentelemetry/api', '@nestjs/common', '@nestjs/core', 'reflect-metadata']) {
      mkdirSync(dirname(join(project.folder, 'node_modules', name)), { recursive: true })
      symlinkSync(join(root, 'node_modules', name), join(project.folder, 'node_modules', name))
    }
    return project
  }

  write(files: Record<string, string | object>): void {
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.folder, name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content, null, 2))
    }
  }

  async run(program: string, args: string[], env: Record<string, string> = {}): Promise<Outcome> {
    try {
      const options = { cwd: this.folder, env: { ...plainEnv(), ...env }, maxBuffer: 2 ** 24 }
      const { stdout, stderr } = await run(program, args, options)
      return { code: 0, output: stdout + stderr }
    } catch (error) {
      const { code, stdout = '', stderr = '' } = error as { code?: number; stdout?: string; stderr?: string }
      return { code: typeof code === 'number' ? code : 1, output: `${stdout}${stderr}${String(error)}` }
    }
  }

  node(...args: string[]): Promise<Outcome> {
    return this.run(process.execPath, args)
  }

  /** A program of the project's own packages. */
  npx(name: string, ...args: string[]): Promise<Outcome> {
    return this.run(join(this.folder, 'node_modules/.bin', name), args)
  }

  /** The compiler that this repository uses. */
  tsc(...args: string[]): Promise<Outcome> {
    return this.run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...args])
  }
}

/** Without what the test runner sets for its own processes. */
function plainEnv(): Record<string, string | undefined> {
  const { NODE_OPTIONS: _options, VITEST: _vitest, NODE_ENV: _env, ...rest } = process.env
  return rest
}
