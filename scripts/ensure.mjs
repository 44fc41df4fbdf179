// What the other scripts stand on: dependencies that are installed and a build that is current, on
// a fresh clone as well.
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = join(dirname(fileURLToPath(import.meta.url)), '..')

export function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19)) return
  console.error(`Holdfast needs Node 20.19 or later; this is ${process.version}.`)
  process.exit(1)
}

/**
 * Installs what package-lock.json names, unless that was done since it last changed. `folder`: with
 * a lock file of its own.
 */
export function ensureInstalled(folder = '.') {
  requireNode()
  const cwd = join(root, folder)
  const marker = join(cwd, 'node_modules/.package-lock.json')
  if (existsSync(marker) && mtime(marker) >= mtime(join(cwd, 'package-lock.json'))) return
  console.log(`Installing dependencies${folder === '.' ? '' : ` of ${folder}`}, once …`)
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const quiet = ['--include=dev', '--no-audit', '--no-fund', '--loglevel=error']
  execFileSync(npm, ['ci', ...quiet], { cwd, stdio: 'inherit' })
}

/** Builds dist/, unless it is newer than everything that it is made of. */
export function ensureBuilt() {
  const built = join(root, 'dist/import/index.mjs')
  const sources = [
    join(root, 'tsconfig.json'),
    join(root, 'tsconfig.build.json'),
    join(root, 'tsconfig.bundlers.json'),
    join(root, 'package.json'),
    ...files(join(root, 'src')),
  ]
  if (existsSync(built) && sources.every((file) => mtime(file) <= mtime(built))) return
  console.log('Building …')
  execFileSync(process.execPath, [join(root, 'scripts/build.mjs')], { cwd: root, stdio: 'inherit' })
}

/**
 * Runs a Node program in the foreground; resolves with its exit code. Signals reach it through the
 * terminal's process group.
 */
export function runNode(args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(options.node ?? process.execPath, args, {
      cwd: root,
      stdio: options.stdio ?? 'inherit',
      env: options.env ?? process.env,
    })
    const ignore = () => {}
    process.on('SIGINT', ignore)
    process.on('SIGTERM', () => child.kill('SIGTERM'))
    child.on('exit', (code, signal) => resolve(signal ? 1 : (code ?? 1)))
  })
}

function files(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
}

function mtime(file) {
  return statSync(file).mtimeMs
}
