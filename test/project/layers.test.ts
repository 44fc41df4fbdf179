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
  fence: ['base', 'drivers'],
  engine: ['base', 'contract'],
  primitives: ['base', 'contract', 'engine', 'stores'],
  'web-locks': ['base', 'contract', 'engine', 'primitives'],
  testing: ['base', 'contract', 'engine', 'primitives', 'stores'],
  cli: ['base', 'contract', 'primitives', 'index.ts'],
  'index.ts': ['base', 'contract', 'engine', 'primitives'],
}

const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))

function importsOf(file: string): string[] {
  const text = readFileSync(join(src, file), 'utf8').replace(/\/\*\*[\s\S]*?\*\//g, '')
  const specifiers = [...text.matchAll(/(?:^(?:import|export|\}).*? from|\bimport\() ?'([^']+)'/gm)].map(
    (match) => match[1] ?? '',
  )
  return specifiers
}

function layerOf(path: string): string {
  return path.split('/')[0] ?? ''
}

describe('the layers', () => {
  it.each(files)('%s imports only downwards', (file) => {
    const layer = layerOf(file)
    for (const specifier of importsOf(file).filter((name) => name.startsWith('.'))) {
      const target = relative(src, resolve(src, dirname(file), specifier)).replace(/\.js$/, '.ts')
      const targetLayer = layerOf(target)
      const isOwn =
        targetLayer === layer && (layer !== 'stores' || target.split('/')[1] === file.split('/')[1])
      expect(isOwn || MAY_IMPORT[layer]?.includes(targetLayer), `${file} imports ${target}`).toBe(true)
    }
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
  const stores = readdirSync(join(src, 'stores'))
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

  it.each(stores)('%s has a conformance run, a page and an export', (store) => {
    expect(readdirSync(join(root, 'test/conformance'))).toContain(`${store}.test.ts`)
    expect(readdirSync(join(root, 'docs/stores'))).toContain(`${store}.md`)
    expect(Object.keys(manifest.exports)).toContain(`./${store}`)
  })
})
