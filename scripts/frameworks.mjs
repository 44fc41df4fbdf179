// The frameworks that are too large for the dependencies of this package: each has a folder in
// test/frameworks with its own package.json and lock file, and is installed into .cache/frameworks.
// The tests ask this list, too, so that what is installed and what is skipped cannot drift apart.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './ensure.mjs'

const FRAMEWORKS = ['prisma', 'next']
const FILES = ['package.json', 'package-lock.json']
const INSTALL_LIMIT_MS = 600_000

/** Where it is installed. */
export function frameworkFolder(name) {
  return join(root, '.cache/frameworks', name)
}

/** null: it is here. Otherwise why it is not. */
export function missingFramework(name) {
  if (!existsSync(stampOf(name))) return `${name} not installed: npm run test:frameworks`
  return readFileSync(stampOf(name), 'utf8') === hashOf(name)
    ? null
    : `${name} not installed since its versions changed: npm run test:frameworks`
}

/** Installs what is missing. Returns what is missing still, each with the reason. */
export function ensureFrameworks() {
  return FRAMEWORKS.filter((name) => missingFramework(name) !== null)
    .map((name) => ({ name, explanation: install(name) }))
    .filter(({ name }) => missingFramework(name) !== null)
}

/** Returns what went wrong, if anything. */
function install(name) {
  if (process.env['HOLDFAST_TEST_INSTALL'] === 'no') return 'HOLDFAST_TEST_INSTALL is no'
  const folder = frameworkFolder(name)
  console.log(`Installing ${name} for the tests, once …`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const file of FILES) copyFileSync(join(sourceOf(name), file), join(folder, file))
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  const { status, error, stderr } = spawnSync('npm', args, {
    cwd: folder,
    encoding: 'utf8',
    timeout: INSTALL_LIMIT_MS,
  })
  if (status !== 0) return error?.message ?? stderr.trim().split('\n').at(-1)
  writeFileSync(stampOf(name), hashOf(name))
  return 'installed, but not found'
}

function sourceOf(name) {
  return join(root, 'test/frameworks', name)
}

/** Written last, so that half an installation does not count. */
function stampOf(name) {
  return join(frameworkFolder(name), 'installed')
}

function hashOf(name) {
  const hash = createHash('sha256')
  for (const file of FILES) hash.update(readFileSync(join(sourceOf(name), file)))
  return hash.digest('hex')
}
