import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

interface Locked {
  readonly version: string
  readonly dependencies?: Record<string, string>
  readonly optionalDependencies?: Record<string, string>
}

type Packages = ReadonlyMap<string, Locked>

function packagesOf(file: string): Packages {
  const lock = JSON.parse(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8'))
  return new Map(Object.entries(lock.packages as Record<string, Locked>))
}

/** Where Node looks for a package that the one at `path` needs. */
function isLocked(packages: Packages, path: string, name: string): boolean {
  for (let folder = path; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    if (packages.has(folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`)) return true
    if (folder === '') return false
  }
}

// `npm ci` refuses a lock file that lacks the native packages of other systems. npm leaves them out
// silently when the registry does not have them in the wanted version.
test.each([
  'package-lock.json',
  'site/package-lock.json',
  'test/frameworks/next/package-lock.json',
  'test/frameworks/prisma/package-lock.json',
])('%s has the packages of every system, so that npm ci works', (file) => {
  const packages = packagesOf(file)
  const missing = [...packages].flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !isLocked(packages, path, name))
      .map((name) => `${path} needs ${name}`),
  )
  expect(missing).toEqual([])
})
