// The version before this one, for the tests in which two versions share a store. It is built from
// git into .cache/previous-version, by its own build and with the packages of this version. The
// tests ask this module, too, so that what is built and what is skipped cannot drift apart.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './ensure.mjs'
import { find } from './servers.mjs'

/** Taken while there is no tag: the first commit that has every store of 0.1.0. */
const BEFORE_FIRST_TAG = '6add6665183b8ef6b6de548991ae80738c34e161'
const NAME = 'the previous version'
const BUILD_LIMIT_MS = 300_000

/** A tag, or a commit: HOLDFAST_TEST_PREVIOUS, the newest tag before HEAD, or the commit above. */
export function previousName() {
  const given = process.env['HOLDFAST_TEST_PREVIOUS']
  if (given) return given
  const { status, stdout } = git('describe', '--tags', '--abbrev=0', '--match', 'v[0-9]*', 'HEAD^')
  return status === 0 ? stdout.trim() : BEFORE_FIRST_TAG
}

/** Where it is built: a folder with its package.json. */
export function previousFolder() {
  return join(root, '.cache/previous-version', commitOf(previousName()) ?? 'unknown')
}

/** null: it is built. Otherwise why it is not. */
export function missingPrevious() {
  const name = previousName()
  if (find('git') === null) return 'git not installed'
  if (commitOf(name) === null) return `${name.slice(0, 12)} is not in this clone`
  return existsSync(stampIn(previousFolder())) ? null : `${name.slice(0, 12)} is not built`
}

/** Builds it. Returns a list: empty, or with why it is missing still. */
export function ensurePrevious() {
  let complaint = 'a shallow clone has no older version: git fetch --unshallow --tags'
  if (missingPrevious() !== null && commitOf(previousName()) !== null) complaint = build()
  const reason = missingPrevious()
  return reason === null ? [] : [{ name: NAME, reason, explanation: `${reason} (${complaint})` }]
}

/** Returns what went wrong, if anything. */
function build() {
  const name = previousName()
  const folder = previousFolder()
  console.log(`Building ${NAME} (${name.slice(0, 12)}) for the tests, once …`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const archive = join(folder, 'archive.tar')
  const steps = [
    ['git', 'archive', '--output', archive, name],
    ['tar', '-xf', archive, '-C', folder],
  ]
  for (const step of steps) {
    const complaint = run(step, root)
    if (complaint !== null) return complaint
  }
  rmSync(archive)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const complaint = run([process.execPath, 'scripts/build.mjs'], folder)
  if (complaint !== null) return complaint
  writeFileSync(stampIn(folder), name)
  return 'built, but not found'
}

/** null: it went well. Otherwise what it said last. */
function run([program, ...args], cwd) {
  const { status, error, stderr, stdout } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    timeout: BUILD_LIMIT_MS,
  })
  if (status === 0) return null
  return error?.message ?? `${stdout}${stderr}`.trim().split('\n').at(-1)
}

/** Written last, so that half a build does not count. */
function stampIn(folder) {
  return join(folder, 'built')
}

/** null: it is not in this clone. */
function commitOf(name) {
  const { status, stdout } = git('rev-parse', '--verify', '--quiet', `${name}^{commit}`)
  return status === 0 ? stdout.trim() : null
}

function git(...args) {
  return spawnSync('git', args, { cwd: root, encoding: 'utf8' })
}

/** The module that `import 'holdfast'` leads to in a version. */
export function entryOf(folder) {
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const { import: entry } = exports['.']
  return join(folder, typeof entry === 'string' ? entry : entry.default)
}
