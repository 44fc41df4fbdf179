// The JavaScript runtimes beside Node on which the SQLite store is tested. `npm run test:runtimes`
// fetches them from the npm registry into .cache/runtimes, so nothing on the machine changes.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './ensure.mjs'

const folder = join(root, '.cache/runtimes')
const inPackages = (path) => join(folder, 'node_modules', path)

/** What `fork` needs to start a program on each of them. */
export const RUNTIMES = {
  node: { execPath: process.execPath, execArgv: ['--disable-warning=ExperimentalWarning'] },
  bun: { package: '@oven/bun-linux-x64', execPath: inPackages('@oven/bun-linux-x64/bin/bun'), execArgv: [] },
  deno: {
    package: '@deno/linux-x64-glibc',
    execPath: inPackages('@deno/linux-x64-glibc/deno'),
    execArgv: ['run', '--allow-all', '--no-lock'],
  },
}

/** null: all of them are there. Otherwise why not. */
export function missingRuntimes() {
  const missing = Object.keys(RUNTIMES).filter((name) => !existsSync(RUNTIMES[name].execPath))
  return missing.length === 0 ? null : `no ${missing.join(', ')}: npm run test:runtimes fetches it`
}

/** Throws where they cannot be installed: another system, or no registry. */
export function ensureRuntimes() {
  if (missingRuntimes() === null) return
  const packages = Object.values(RUNTIMES).flatMap((runtime) => runtime.package ?? [])
  console.log(`Installing ${packages.join(' and ')} from the npm registry …`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error']
  execFileSync('npm', ['install', ...packages, ...quiet], { cwd: folder, stdio: 'inherit' })
}
