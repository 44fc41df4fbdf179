import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import type { ordersOf as OrdersOf } from './locked/orders.js'

const root = join(import.meta.dirname, '../..')
const folder = join(root, `.cache/locked-${process.pid}`)
/** The two kinds of decorators, by the compiler's name of the option that chooses. */
const KINDS = [
  { kind: 'standard', experimentalDecorators: false },
  { kind: 'legacy', experimentalDecorators: true },
]

/** The test runner does not know decorators; the compiler that users have does. */
async function compile(experimentalDecorators: boolean): Promise<typeof OrdersOf> {
  const target = join(folder, experimentalDecorators ? 'legacy' : 'standard')
  mkdirSync(target, { recursive: true })
  const source = join(root, 'test/primitives/locked')
  const compilerOptions = {
    experimentalDecorators,
    noEmit: false,
    declaration: false,
    sourceMap: false,
    rootDir: root,
    outDir: target,
  }
  const include = [
    join(source, 'orders.ts'),
    join(source, 'types.ts'),
    join(root, 'src/drivers/untyped.d.ts'),
  ]
  const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include }
  writeFileSync(join(target, 'tsconfig.json'), JSON.stringify(config))
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', target], { encoding: 'utf8' })
  expect(status, stdout).toBe(0)
  const made = join(target, 'test/primitives/locked/orders.js')
  return (await import(/* @vite-ignore */ pathToFileURL(made).href)).ordersOf
}

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.each(KINDS)('@locked as a $kind decorator', ({ experimentalDecorators }) => {
  let ordersOf: typeof OrdersOf

  beforeAll(async () => {
    ordersOf = await compile(experimentalDecorators)
  })

  function scene() {
    const locks = new Holdfast(memory())
    const watch = { inside: 0, mostInside: 0 }
    return { locks, watch, Orders: ordersOf(locks, watch) }
  }

  it('runs a method inside the mutex that its arguments name', async () => {
    const { locks, watch, Orders } = scene()
    const orders = new Orders()
    expect(await Promise.all([1, 2, 3].map((amount) => orders.pay('7', amount)))).toEqual([
      'paid 1',
      'paid 2',
      'paid 3',
    ])
    expect(watch.mostInside).toBe(1)
    expect(orders.paid).toEqual(['7 1', '7 2', '7 3'])
    expect(await locks.mutex('order:7').isLocked()).toBe(false)
  })

  it('excludes other objects and plain mutexes of the same name, and nothing else', async () => {
    const { locks, watch, Orders } = scene()
    await Promise.all(['1', '2'].map((id) => new Orders().pay(id, 1)))
    expect(watch.mostInside).toBe(2)
    const hold = await locks.mutex('order:7').acquire()
    const waiting = new Orders().pay('7', 1)
    expect(await Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, 30, 'waits'))])).toBe(
      'waits',
    )
    await hold.release()
    expect(await waiting).toBe('paid 1')
  })

  it('lets a method that is inside call another of the same name', async () => {
    const { Orders } = scene()
    expect(await new Orders().payTwice('7', 5)).toEqual(['paid 5', 'paid 5'])
  })

  it('passes errors through, and releases', async () => {
    const { locks, Orders } = scene()
    await expect(new Orders().report()).rejects.toThrow(RangeError)
    expect(await locks.mutex('report').isLocked()).toBe(false)
  })

  it('goes by its options', async () => {
    const { locks, Orders } = scene()
    await using _hold = await locks.mutex('report').acquire()
    await expect(new Orders().report()).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT' })
  })

  it('works on static methods', async () => {
    const { watch, Orders } = scene()
    expect(await Promise.all([Orders.make('x'), Orders.make('x')])).toEqual([1, 2])
    expect(Orders.made).toEqual(['x', 'x'])
    expect(watch.mostInside).toBe(1)
  })

  it('keeps the names of methods, by which frameworks tell them apart', () => {
    const { Orders } = scene()
    const { pay, report, both } = Orders.prototype
    expect([pay, report, both, Orders.make].map(({ name }) => name)).toEqual([
      'pay',
      'report',
      'both',
      'make',
    ])
  })

  it('can be put on a method more than once', async () => {
    const { Orders } = scene()
    expect(await new Orders().both()).toBe('inside both')
  })

  it('refuses wrong names: a fixed one at once, a computed one as a rejection', async () => {
    const { locks, Orders } = scene()
    const refused = { code: 'INVALID_ARGUMENT' }
    expect(() => locks.locked('')).toThrow(expect.objectContaining(refused))
    expect(() => locks.locked(undefined as unknown as string)).toThrow(expect.objectContaining(refused))
    await expect(Orders.make('')).rejects.toMatchObject(refused)
    await expect(Orders.make(undefined as unknown as string)).rejects.toMatchObject(refused)
  })

  it('is for methods only', () => {
    const { locks } = scene()
    const decorate = locks.locked('a') as unknown as (value: unknown, context: { kind: string }) => unknown
    for (const kind of ['class', 'field', 'getter', 'setter', 'accessor'])
      expect(() => decorate(() => {}, { kind })).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
      )
  })

  it('as a legacy decorator is for methods only, too', () => {
    const { locks } = scene()
    const decorate = locks.locked('a') as unknown as (...args: unknown[]) => unknown
    for (const descriptor of [undefined, { get: () => 1 }])
      expect(() => decorate({}, 'field', descriptor)).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
      )
  })

  it('as a legacy decorator keeps the metadata that a framework has written on the method', () => {
    const { locks } = scene()
    const written = new Map<unknown, Map<unknown, unknown>>()
    const metadata = {
      getOwnMetadataKeys: (on: unknown) => [...(written.get(on)?.keys() ?? [])],
      getOwnMetadata: (key: unknown, on: unknown) => written.get(on)?.get(key),
      defineMetadata: (key: unknown, value: unknown, on: unknown) =>
        written.set(on, (written.get(on) ?? new Map()).set(key, value)),
    }
    const descriptor = { value: async () => 'orders' }
    metadata.defineMetadata('path', '/orders', descriptor.value)
    Object.assign(Reflect, metadata)
    try {
      locks.locked('a')({}, 'list', descriptor)
    } finally {
      for (const name of Object.keys(metadata)) Reflect.deleteProperty(Reflect, name)
    }
    expect(metadata.getOwnMetadata('path', descriptor.value)).toBe('/orders')
  })
})
