// Compiles src/ to dist/. The new build replaces the old one only when it is complete, and nothing of a deleted source stays behind.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const fresh = join(root, `.cache/build-${process.pid}`)
const tsc = join(root, 'node_modules/typescript/bin/tsc')

mkdirSync(join(root, '.cache'), { recursive: true })
const { status } = spawnSync(
  process.execPath,
  [tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', fresh],
  { stdio: 'inherit' },
)
if (status === 0) {
  chmodSync(join(fresh, 'cli/main.js'), 0o755)
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  renameSync(fresh, join(root, 'dist'))
}
rmSync(fresh, { recursive: true, force: true })
process.exitCode = status ?? 1
