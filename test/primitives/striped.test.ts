import { describe, expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'

const locks = new Holdfast(memory())

/** Processes of different versions, and other languages, must agree on these for ever. */
const PINNED: readonly [key: string | number, of7: number, of64: number, of1000: number][] = [
  ['user:7', 1, 12, 452],
  ['user:8', 2, 32, 848],
  ['a', 2, 7, 775],
  ['', 1, 1, 809],
  ['order:42', 6, 0, 584],
  ['caf\u{e9}', 4, 23, 799],
  ['cafe\u{301}', 3, 34, 362],
  ['\u{d83d}\u{dd12}', 5, 30, 742],
  [0, 4, 45, 621],
  [7, 2, 12, 484],
  [42, 2, 45, 37],
  ['42', 2, 45, 37],
  [-1, 1, 25, 945],
  [1.5, 6, 47, 799],
  ['x'.repeat(1000), 6, 54, 150],
]

describe('a striped lock', () => {
  it.each(PINNED)('leads %j to the segments that it always did', (key, of7, of64, of1000) => {
    expect(locks.striped('stock', 7).indexOf(key)).toBe(of7)
    expect(locks.striped('stock', 64).indexOf(key)).toBe(of64)
    expect(locks.striped('stock', 1000).indexOf(key)).toBe(of1000)
  })

  it('names its segments as it always did', () => {
    const stock = locks.striped('stock', 7)
    expect(stock.for('user:7').name).toBe(`stock#${stock.indexOf('user:7')}`)
    expect(stock.at(6).name).toBe('stock#6')
    expect(stock.all().names).toEqual([0, 1, 2, 3, 4, 5, 6].map((index) => `stock#${index}`))
  })

  it('takes a number for its digits, and tells all other keys apart', () => {
    const stock = locks.striped('stock', 10_000)
    expect(stock.indexOf(42)).toBe(stock.indexOf('42'))
    const keys = ['a', 'A', 'a ', 'caf\u00e9', 'cafe\u0301', '', '\u0000', 'constructor', '__proto__']
    expect(new Set(keys.map((key) => stock.indexOf(key))).size).toBe(keys.length)
  })

  it.each([2, 7, 64, 100])('spreads keys evenly over %i segments', (count) => {
    const stock = locks.striped('stock', count)
    for (const make of [(index: number) => `user:${index}`, (index: number) => index * 1024]) {
      const hits = new Array<number>(count).fill(0)
      for (let index = 0; index < 200 * count; index++) {
        const segment = stock.indexOf(make(index))
        hits[segment] = (hits[segment] ?? 0) + 1
      }
      expect(Math.min(...hits)).toBeGreaterThan(120)
      expect(Math.max(...hits)).toBeLessThan(300)
    }
  })

  it('takes each segment of several keys once, in one order', () => {
    const stock = locks.striped('stock', 3)
    const keys = ['a', 'b', 'c', 'd', 'e', 'f']
    const { names } = stock.forKeys(keys)
    expect(names).toEqual([...new Set(names)].sort())
    expect(stock.forKeys([...keys].reverse()).names).toEqual(names)
    expect(stock.forKeys(['a', 'a']).names).toHaveLength(1)
  })

  it('of one segment is one lock', () => {
    const stock = locks.striped('stock', 1)
    expect(stock.indexOf('anything')).toBe(0)
    expect(stock.all().names).toEqual(['stock#0'])
  })

  it.each([0, -1, 1.5, Number.NaN, 100_001, '3' as unknown as number])(
    'does not have %j segments',
    (count) => {
      expect(() => locks.striped('stock', count)).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
      )
    },
  )

  it('refuses keys and numbers that lead nowhere', () => {
    const stock = locks.striped('stock', 3)
    const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT' })
    for (const key of [null, undefined, {}, Symbol('key'), true])
      expect(() => stock.for(key as unknown as string)).toThrow(refused)
    for (const index of [-1, 3, 0.5, Number.NaN]) expect(() => stock.at(index)).toThrow(refused)
    expect(() => stock.forKeys([])).toThrow(refused)
    // Not its letters, each as a key.
    expect(() => stock.forKeys('user:7')).toThrow(refused)
    expect(() => locks.striped('', 3)).toThrow(refused)
  })
})
