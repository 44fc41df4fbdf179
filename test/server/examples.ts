import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../project/sources.js'

/** A folder inside the package, so that `import 'holdfast'` leads to its own build. */
export function cacheFolder(onFinished: (remove: () => void) => void): string {
  mkdirSync(join(root, '.cache'), { recursive: true })
  const folder = mkdtempSync(join(root, '.cache/recipe-'))
  onFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
