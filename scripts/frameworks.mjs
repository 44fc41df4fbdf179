// The frameworks that are too large for the dependencies of this package: each has a folder in
// test/frameworks with its own package.json and lock file, and is installed into .cache/frameworks.
// The tests ask this list, too, so that what is installed and what is skipped cannot drift apart.
import { join } from 'node:path'
import { root } from './ensure.mjs'
import { FetchedFolder } from './fetched.mjs'

const FRAMEWORKS = ['prisma', 'next']
const INSTALL = ['npm', 'ci', '--no-audit', '--no-fund', '--loglevel=error']
const INSTALL_LIMIT_MS = 600_000

/** Where it is installed. */
export function frameworkFolder(name) {
  return folderOf(name).path
}

/** null: it is here. Otherwise why it is not. */
export function missingFramework(name) {
  const { state } = folderOf(name)
  if (state === 'current') return null
  const since = state === 'outdated' ? ' since its versions changed' : ''
  return `${name} not installed${since}: npm run test:frameworks`
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
  console.log(`Installing ${name} for the tests, once …`)
  return folderOf(name).fill([INSTALL], { limitMs: INSTALL_LIMIT_MS, copies: filesOf(name) })
}

function filesOf(name) {
  return ['package.json', 'package-lock.json'].map((file) => join(root, 'test/frameworks', name, file))
}

function folderOf(name) {
  return new FetchedFolder(join('frameworks', name), 'installed', filesOf(name))
}
