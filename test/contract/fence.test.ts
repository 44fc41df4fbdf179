import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FLOOR_SKEW_MS } from '../../src/contract/constants.js'
import { nextFence } from '../../src/contract/fence.js'

const moments = fc.integer({ min: 0, max: 4_000_000_000_000 })
const fences = fc.integer({ min: 0, max: 4_000_000_000_000_000 })

describe('nextFence', () => {
  it('is above the last one, whatever clock and floor say', () => {
    fc.assert(
      fc.property(fences, fences, moments, (last, floor, wallMs) => {
        expect(nextFence({ last, floor, wallMs, block: 1 })).toBeGreaterThan(last)
      }),
    )
  })

  it('is not behind the clock in microseconds, so that it grows after the counter was lost', () => {
    fc.assert(
      fc.property(fences, moments, (last, wallMs) => {
        expect(nextFence({ last, floor: 0, wallMs, block: 1 })).toBeGreaterThanOrEqual(wallMs * 1000)
      }),
    )
  })

  it('is above what the claimant has seen, as far as that can be believed', () => {
    const wallMs = 1_000_000
    const most = (wallMs + FLOOR_SKEW_MS) * 1000
    expect(nextFence({ last: 0, floor: most - 1, wallMs, block: 1 })).toBe(most)
    expect(nextFence({ last: 0, floor: most, wallMs, block: 1 })).toBe(most)
    expect(nextFence({ last: 0, floor: Number.MAX_SAFE_INTEGER, wallMs, block: 1 })).toBe(most)
    expect(nextFence({ last: 0, floor: wallMs * 1000, wallMs, block: 1 })).toBe(wallMs * 1000 + 1)
  })

  it('counts on where the clock stands still or falls back', () => {
    const first = nextFence({ last: 0, floor: 0, wallMs: 5_000, block: 1 })
    expect(nextFence({ last: first, floor: 0, wallMs: 5_000, block: 1 })).toBe(first + 1)
    expect(nextFence({ last: first, floor: 0, wallMs: 1, block: 1 })).toBe(first + 1)
  })

  it('is a whole number on a clock with fractions', () => {
    expect(nextFence({ last: 0, floor: 0, wallMs: 1.23456789, block: 1 })).toBe(1234)
  })

  it('is refused beyond 2^53 rather than given twice', () => {
    const last = Number.MAX_SAFE_INTEGER
    expect(() => nextFence({ last, floor: 0, wallMs: 0, block: 1 })).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED' }),
    )
    expect(nextFence({ last: last - 1, floor: 0, wallMs: 0, block: 1 })).toBe(last)
    // Nor does the end of a block pass it.
    expect(() => nextFence({ last: last - 1, floor: 0, wallMs: 0, block: 2 })).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED' }),
    )
  })
})
