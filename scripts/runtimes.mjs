// The JavaScript runtimes on which Holdfast is tested. They come from the npm registry into
// .cache/runtimes, so nothing on the machine changes.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './ensure.mjs'

const NODE_ARGS = ['--disable-warning=ExperimentalWarning']

/** What `fork` and `spawn` need to start a program on each of them. `node`: the one that runs this. */
export const RUNTIMES = {
  node: { execPath: process.execPath, execArgv: NODE_ARGS },
  bun: bun(),
  deno: deno(),
  Bun: bun(),
  Deno: deno(),
  ...Object.fromEntries(['20', '22', '24', '26'].map((version) => [`Node ${version}`, nodeOf(version)])),
}

function bun() {
  return installed('@oven/bun-linux-x64', 'bun', 'bin/bun', [])
}

function deno() {
  return installed('@deno/linux-x64-glibc', 'deno', 'deno', ['run', '--allow-all', '--no-lock'])
}

/** A Node of that major version. */
function nodeOf(version) {
  return installed(`node@${version}`, `node-${version}`, 'bin/node', NODE_ARGS)
}

function installed(spec, name, program, execArgv) {
  const folder = join(root, '.cache/runtimes', name)
  const execPath = join(folder, 'node_modules', spec.replace(/(?<=.)@.*$/, ''), program)
  return { spec, folder, execPath, execArgv }
}

/** null: it is here. Otherwise why not. */
export function missingRuntime(name) {
  return existsSync(RUNTIMES[name].execPath) ? null : `no ${name}: npm run test:runtimes fetches it`
}

/** null: Bun and Deno are there. Otherwise why not. */
export function missingRuntimes() {
  return missingRuntime('bun') ?? missingRuntime('deno')
}

/** Throws where one cannot be installed: another system, or no registry. */
export function ensureRuntimes(names = ['bun', 'deno']) {
  for (const name of names) {
    const { spec, folder } = RUNTIMES[name]
    if (missingRuntime(name) === null) continue
    console.log(`Installing ${spec} from the npm registry …`)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{"private":true}')
    const quiet = ['--no-audit', '--no-fund', '--loglevel=error']
    execFileSync('npm', ['install', spec, ...quiet], { cwd: folder, stdio: 'inherit' })
  }
}

/** Its exact version: `22.13.1`. */
export function versionOf(name) {
  const { execPath } = RUNTIMES[name]
  return /\d+\.\d+\.\d+/.exec(execFileSync(execPath, ['--version']).toString())[0]
}
