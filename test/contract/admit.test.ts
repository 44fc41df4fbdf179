import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { admit, blockers, type Place } from '../../src/contract/admit.js'
import { EXCLUSIVE } from '../../src/contract/constants.js'

const sum = (line: readonly Place[]): number => line.reduce((total, { permits }) => total + permits, 0)
const waiting = (...permits: number[]): Place[] => permits.map((each) => ({ permits: each, granted: false }))
const held = (...permits: number[]): Place[] => permits.map((each) => ({ permits: each, granted: true }))

/** A line as it can be: holds first, which may exceed the capacity after a resize, and nobody wants more than all. */
const situations = fc
  .record({
    capacity: fc.integer({ min: 1, max: 8 }),
    holds: fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 5 }),
    waiters: fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 8 }),
  })
  .map(({ capacity, holds, waiters }) => ({
    capacity,
    line: [...held(...holds), ...waiting(...waiters.map((permits) => Math.min(permits, capacity)))],
  }))

describe('admit', () => {
  it('makes the holds the longest prefix of the line that fits', () => {
    fc.assert(
      fc.property(situations, ({ line, capacity }) => {
        const prefixes = line.map((_, index) => line.slice(0, index + 1))
        const longest = prefixes.filter((prefix) => sum(prefix) <= capacity).at(-1) ?? []
        expect(admit(line, capacity)).toEqual(longest.filter((place) => !place.granted))
      }),
    )
  })

  it('gives the very claims, in order', () => {
    fc.assert(
      fc.property(situations, ({ line, capacity }) => {
        const admitted = admit(line, capacity)
        const waiters = line.filter((place) => !place.granted)
        expect(admitted.every((place, index) => place === waiters[index])).toBe(true)
      }),
    )
  })

  it('lets a large claim at the head make later small ones wait', () => {
    expect(admit([...held(2), ...waiting(2, 1, 1)], 3)).toEqual([])
  })

  it('admits readers together and a writer alone', () => {
    expect(admit(waiting(1, 1, EXCLUSIVE, 1), EXCLUSIVE)).toHaveLength(2)
    expect(admit(waiting(EXCLUSIVE, 1, 1), EXCLUSIVE)).toHaveLength(1)
    expect(admit([...held(1), ...waiting(EXCLUSIVE, 1)], EXCLUSIVE)).toEqual([])
  })

  it('reads the line only as far as the first claim that must wait', () => {
    let read = 0
    function* line(): Generator<Place> {
      for (const place of [...held(3), ...waiting(...Array<number>(1000).fill(1))]) {
        read++
        yield place
      }
    }
    expect(admit(line(), 3)).toEqual([])
    expect(read).toBe(2)
  })
})

describe('blockers', () => {
  const questions = situations
    .filter(({ line }) => line.some((place) => !place.granted))
    .chain((situation) => {
      const waiters = situation.line.filter((place) => !place.granted)
      return fc.constantFrom(...waiters).map((claim) => ({ ...situation, claim }))
    })

  it('are none exactly when everything ahead leaves room', () => {
    fc.assert(
      fc.property(questions, ({ line, claim, capacity }) => {
        const ahead = line.slice(0, line.indexOf(claim))
        const isFree = sum(ahead) + claim.permits <= capacity
        expect(blockers(line, claim, capacity).length === 0).toBe(isFree)
      }),
    )
  })

  it('stand ahead of the claim, in order', () => {
    fc.assert(
      fc.property(questions, ({ line, claim, capacity }) => {
        const ahead = line.slice(0, line.indexOf(claim))
        const found = blockers(line, claim, capacity)
        expect(found).toEqual(ahead.filter((place) => found.includes(place)))
      }),
    )
  })

  it('are all those that bar it by themselves, if there are such: none of them may stay', () => {
    fc.assert(
      fc.property(questions, ({ line, claim, capacity }) => {
        const ahead = line.slice(0, line.indexOf(claim))
        const barring = ahead.filter((place) => sum([place, claim]) > capacity)
        fc.pre(barring.length > 0)
        expect(blockers(line, claim, capacity)).toEqual(barring)
        for (const one of barring) expect(admit([one, claim], capacity)).not.toContain(claim)
      }),
    )
  })

  it('suffice: when the last of them has left, either the claim fits or it has other blockers', () => {
    fc.assert(
      fc.property(questions, ({ line, claim, capacity }) => {
        let left: Place[] = line
        for (let found = blockers(left, claim, capacity); found.length > 0; ) {
          const leaving = found
          left = left.filter((place) => !leaving.includes(place))
          found = blockers(left, claim, capacity)
        }
        expect(admit(left, capacity)).toContain(claim)
      }),
    )
  })

  it('of a reader behind readers and a writer is the writer alone', () => {
    const [reader, writer, behind] = [...held(1), ...waiting(EXCLUSIVE, 1)] as [Place, Place, Place]
    expect(blockers([reader, writer, behind], behind, EXCLUSIVE)).toEqual([writer])
  })
})
