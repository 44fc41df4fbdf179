import { describe, expect, it } from 'vitest'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import type { ClaimView } from '../../src/contract/store.js'
import { type SeenLine, seenLine } from '../../src/server/lines.js'
import { Timeline } from '../../src/server/timeline.js'

const START_MS = Date.parse('2026-01-01T00:00:00Z')

function claim(id: string, fence: number | null, ageMs = 0, expiresInMs = 30_000): ClaimView {
  return { id, permits: EXCLUSIVE, fence, info: '{}', ageMs, expiresInMs }
}

function lineOf(name: string, claims: ClaimView[], wallMs: number, before?: SeenLine): SeenLine {
  return seenLine({ resource: name, capacity: EXCLUSIVE, claims }, wallMs, before)
}

describe('two looks at a line', () => {
  it('give the same object while nothing but the age has changed', () => {
    const first = lineOf('a', [claim('1', 7), claim('2', null)], START_MS)
    const aged = [claim('1', 7, 503, 29_501), claim('2', null, 498, 29_500)]
    expect(lineOf('a', aged, START_MS + 500, first)).toBe(first)
  })

  it.each([
    ['a renewal', [claim('1', 7, 500, 30_000), claim('2', null, 500, 29_500)]],
    ['a hold that left', [claim('2', 8, 0, 29_500)]],
    ['a new waiter', [claim('1', 7, 500, 29_500), claim('2', null, 500, 29_500), claim('3', null)]],
    ['another fence', [claim('1', 9, 0, 29_500), claim('2', null, 500, 29_500)]],
  ])('notice %s', (_, claims) => {
    const first = lineOf('a', [claim('1', 7), claim('2', null)], START_MS)
    expect(lineOf('a', claims, START_MS + 500, first)).not.toBe(first)
  })

  it('keep the start of a hold although its age is counted anew', () => {
    const first = lineOf('a', [claim('1', 7)], START_MS)
    const later = lineOf('a', [claim('1', 7, 10_004, 30_000)], START_MS + 10_000, first)
    expect(later.claims[0]?.sinceMs).toBe(START_MS)
  })
})

describe('the timeline', () => {
  it('tells a wait that was granted from one that was given up, and from a hold', () => {
    const timeline = new Timeline()
    const first = lineOf('a', [claim('1', 7), claim('2', null), claim('3', null)], START_MS)
    const second = lineOf('a', [claim('2', 8)], START_MS + 1000, first)
    timeline.note(first, second, START_MS + 1000)
    const entries = timeline.of('a', second, START_MS + 2000)
    const of = (id: string) => entries.filter((each) => each.id === id)
    expect(of('1')).toMatchObject([{ state: 'held', fence: 7, end: 'left', to: '2026-01-01T00:00:01.000Z' }])
    expect(of('2')).toMatchObject([
      { state: 'waited', end: 'granted' },
      { state: 'held', fence: 8, to: null, end: null },
    ])
    expect(of('3')).toMatchObject([{ state: 'waited', end: 'left' }])
  })

  it('forgets what is older than five minutes', () => {
    const timeline = new Timeline()
    const old = lineOf('a', [claim('1', 7)], START_MS)
    timeline.note(old, null, START_MS)
    expect(timeline.of('a', undefined, START_MS + 299_000)).toHaveLength(1)
    expect(timeline.of('a', undefined, START_MS + 301_000)).toHaveLength(0)
    const other = lineOf('b', [claim('2', 8)], START_MS + 301_000)
    timeline.note(other, null, START_MS + 301_000)
    expect(timeline.size).toBe(1)
  })

  it('is bounded for one resource, and for 10,000 that change all the time', () => {
    const timeline = new Timeline()
    for (let i = 0; i < 2000; i++)
      timeline.note(lineOf('hot', [claim(`${i}`, i + 1)], START_MS + i), null, START_MS + i)
    expect(timeline.size).toBe(500)
    expect(timeline.of('hot', undefined, START_MS + 2000)).toHaveLength(500)
    for (let i = 0; i < 50_000; i++)
      timeline.note(lineOf(`r${i % 10_000}`, [claim(`${i}`, i + 1)], START_MS + 2000), null, START_MS + 2000)
    expect(timeline.size).toBeLessThanOrEqual(20_000)
    // A line of 10,000 waiters is shown in part.
    const long = lineOf(
      'long',
      Array.from({ length: 10_000 }, (_, i) => claim(`${i}`, i ? null : 1)),
      START_MS,
    )
    expect(timeline.of('long', long, START_MS)).toHaveLength(500)
  })
})
