import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoffMs } from '../../src/base/backoff.js'

describe('backoffMs', () => {
  it('doubles from the first to the most', () => {
    const full = [1, 2, 3, 4, 5, 6].map((attempt) => backoffMs(attempt, 1, 100, 1_000))
    expect(full).toEqual([100, 200, 400, 800, 1_000, 1_000])
  })

  it('draws from the upper half of the wait', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e6 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (attempt, random) => {
          const full = backoffMs(attempt, 1, 50, 5_000)
          const drawn = backoffMs(attempt, random, 50, 5_000)
          expect(drawn).toBeGreaterThanOrEqual(full / 2)
          expect(drawn).toBeLessThanOrEqual(full)
        },
      ),
    )
  })

  it('stays finite after any number of attempts', () => {
    expect(backoffMs(1e9, 1, 100, Number.MAX_VALUE)).toBe(100 * 2 ** 30)
  })
})
