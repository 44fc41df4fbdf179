import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatMs, toMs } from '../../src/base/duration.js'

const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT' })

describe('toMs', () => {
  it.each([
    [0, 0],
    [1.5, 1.5],
    ['500ms', 500],
    ['30s', 30_000],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
    ['0.5s', 500],
    [' 1 s ', 1_000],
  ])('reads %j as %d ms', (value, ms) => {
    expect(toMs(value, { name: 'lease' })).toBe(ms)
  })

  it.each([
    -1,
    Number.NaN,
    Infinity,
    -Infinity,
    '',
    's',
    '5',
    '5 min',
    '-5s',
    '1e3ms',
    '5S',
    '1s 2ms',
    null,
    undefined,
    {},
    true,
  ])('refuses %s', (value) => {
    expect(() => toMs(value as never, { name: 'lease' })).toThrow(refused)
  })

  it('refuses an object that cannot become text', () => {
    expect(() => toMs({ toString: 1 } as never, { name: 'lease' })).toThrow(refused)
  })

  it('allows for ever only where it means something', () => {
    expect(toMs(Infinity, { name: 'wait', infinite: true })).toBe(Infinity)
    expect(() => toMs(-Infinity, { name: 'wait', infinite: true })).toThrow(refused)
  })

  it('refuses what is too short, and says what was wrong and what is accepted', () => {
    expect(toMs('100ms', { name: 'lease', minMs: 100 })).toBe(100)
    expect(() => toMs('99ms', { name: 'lease', minMs: 100 })).toThrow(
      "lease is '99ms', but must be a duration of at least 100 ms",
    )
    expect(() => toMs(-1, { name: 'lease' })).toThrow(/^lease is -1, .*'500ms', '30s' or '5m'/)
  })

  it('gives every fine number back unchanged', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }), (ms) => {
        expect(toMs(ms, { name: 'lease' })).toBe(ms)
      }),
    )
  })
})

describe('formatMs', () => {
  it.each([
    [0.4, '0 ms'],
    [999, '999 ms'],
    [1_000, '1 s'],
    [1_240, '1.2 s'],
    [180_000, '3 min'],
    [5_400_000, '1.5 h'],
  ])('writes %d as %s', (ms, text) => {
    expect(formatMs(ms)).toBe(text)
  })
})
