import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const src = join(root, 'src')

/**
 * Each layer with those that it may import from. `testing` stands beside the primitives: it uses
 * the public API. `fence` stands apart: a guard sits at the resource, where there may be no lock at
 * all, only the number that a hold had.
 */
const MAY_IMPORT: Record<string, string[]> = {
  base: [],
  drivers: ['base'],
  contract: ['base'],
  stores: ['base', 'contract', 'drivers'],
  'database-locks': ['base', 'contract', 'drivers'],
  fence: ['base', 'drivers'],
  calls: ['base', 'contract'],
  states: ['base', 'contract', 'calls'],
  engine: ['base', 'contract', 'calls', 'states'],
  primitives: ['base', 'contract', 'calls', 'states', 'engine', 'stores'],
  'web-locks': ['base', 'contract', 'engine', 'primitives'],
  redlock: ['base', 'contract', 'primitives', 'stores'],
  observe: ['base'],
  nestjs: ['base', 'contract', 'primitives'],
  testing: ['base', 'contract', 'engine', 'primitives', 'stores'],
  server: ['base', 'contract', 'calls', 'engine', 'primitives'],
  cli: ['base', 'contract', 'observe', 'primitives', 'server', 'index.ts'],
  'index.ts': ['base', 'contract', 'engine', 'primitives'],
}

/** Folders of src/stores that are no stores: every store may import from them. */
const SHARED_BY_STORES = ['embedded', 'shared']

/** The databases that have locks of their own beside their store. */
const DATABASES = ['postgres', 'mysql', 'redis']

/**
 * Locks that are no stores use the pools, the schema and the errors of their database, which its store has. That store's
 * index exports them, so that users find all that is for one database in one place.
 */
function joinsStoreAndLocks(file: string, target: string): boolean {
  return DATABASES.some((database) => {
    const index = `stores/${database}/index.ts`
    if (file === index) return target.startsWith('database-locks/')
    const isLock = file.startsWith(`database-locks/${database}/`)
    const isOfDatabase = target.startsWith(`stores/${database}/`) && target !== index
    return isLock && (isOfDatabase || target.startsWith('stores/shared/'))
  })
}

const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))

function importsOf(file: string): string[] {
  const text = readFileSync(join(src, file), 'utf8').replace(/\/\*\*[\s\S]*?\*\//g, '')
  const specifiers = [...text.matchAll(/(?:^(?:import|export|\}).*? from|\bimport\() ?'([^']+)'/gm)].map(
    (match) => match[1] ?? '',
  )
  return specifiers
}

/** The files of src that it imports. */
function targetsOf(file: string): string[] {
  const specifiers = importsOf(file).filter((name) => name.startsWith('.'))
  return specifiers.map((name) => relative(src, resolve(src, dirname(file), name)).replace(/\.js$/, '.ts'))
}

function layerOf(path: string): string {
  return path.split('/')[0] ?? ''
}

function storesMayShare(file: string, target: string): boolean {
  const [folder, targetFolder] = [file, target].map((path) => path.split('/')[1] ?? '')
  return folder === targetFolder || SHARED_BY_STORES.includes(targetFolder ?? '')
}

describe('the layers', () => {
  it.each(files)('%s imports only downwards', (file) => {
    const layer = layerOf(file)
    for (const target of targetsOf(file)) {
      const targetLayer = layerOf(target)
      const isOwn = targetLayer === layer && (layer !== 'stores' || storesMayShare(file, target))
      const isAllowed = isOwn || MAY_IMPORT[layer]?.includes(targetLayer) || joinsStoreAndLocks(file, target)
      expect(isAllowed, `${file} imports ${target}`).toBe(true)
    }
  })

  it('keeps what the locks of all databases share apart from each database', () => {
    const folderOf = (path: string) => path.split('/')[1] ?? ''
    const strangers = files
      .filter((file) => layerOf(file) === 'database-locks')
      .flatMap((file) => {
        const others = DATABASES.filter((database) => database !== folderOf(file))
        return targetsOf(file).filter((target) => others.includes(folderOf(target)))
      })
    expect(strangers).toEqual([])
  })

  it('loads no package at run time but optional drivers', () => {
    const optional = Object.keys(
      JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).peerDependencies,
    )
    const packages = files
      .flatMap(importsOf)
      .filter((name) => !name.startsWith('.') && !name.startsWith('node:'))
    expect(packages.filter((name) => !optional.includes(name))).toEqual([])
  })
})

describe('every store', () => {
  const stores = readdirSync(join(src, 'stores')).filter((folder) => !SHARED_BY_STORES.includes(folder))
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

  it.each(stores)('%s has a conformance run, a page and an export', (store) => {
    expect(readdirSync(join(root, 'test/conformance'))).toContain(`${store}.test.ts`)
    expect(readdirSync(join(root, 'docs/stores'))).toContain(`${store}.md`)
    expect(Object.keys(manifest.exports)).toContain(`./${store}`)
  })
})
