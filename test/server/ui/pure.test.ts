import { describe, expect, it } from 'vitest'
import type { Party, ResourceDetail, TimelineEntry } from '../../../src/server/shapes.js'
import { backoffMs } from '../../../src/server/ui/backoff.js'
import { nameOf, ofBreaking, ofCancelling, ofResizing } from '../../../src/server/ui/consequences.js'
import { countText, durationText } from '../../../src/server/ui/format.js'
import { lanesOf, spanOf } from '../../../src/server/ui/lanes.js'
import { hashOf, isFiltering, NO_FILTER, routeOf } from '../../../src/server/ui/route.js'
import { piecesOf, shortened, visible, wordsOf } from '../../../src/server/ui/visible.js'

describe('text from outside', () => {
  it('shows characters that hide, and leaves the others alone', () => {
    expect(visible('order:42 – größe 注文')).toBe('order:42 – größe 注文')
    expect(visible('a\u202Egnp.exe')).toBe('a‹U+202E›gnp.exe')
    expect(visible('a\u200Bb\u2066c\uFEFFd\u00ADe\u{E0041}')).toBe(
      'a‹U+200B›b‹U+2066›c‹U+FEFF›d‹U+00AD›e‹U+E0041›',
    )
    expect(visible('a\nb\tc\u0000\u00A0')).toBe('a‹U+000A›b‹U+0009›c‹U+0000›‹U+00A0›')
    expect(visible('  a b ')).toBe('␣␣a b␣')
    expect(wordsOf(new Error("'a\u202Eb' is held"))).toBe("'a‹U+202E›b' is held")
    expect(piecesOf('a\u200B')).toEqual([
      { text: 'a', isHidden: false },
      { text: '‹U+200B›', isHidden: true },
    ])
  })

  it('loses its middle where it is too long, and no half of a character', () => {
    expect(shortened('short', 5)).toBe('short')
    expect(shortened(`begin${'x'.repeat(100)}end`, 13)).toBe('beginxxx…xend')
    expect([...shortened('😀'.repeat(50), 10)]).toHaveLength(10)
    expect(shortened('😀'.repeat(50), 10).isWellFormed()).toBe(true)
  })
})

it('durations have at most two units', () => {
  expect([-5, 0, 999, 1000, 59_999, 60_000, 125_000].map(durationText)).toEqual([
    '0 s',
    '0 s',
    '0 s',
    '1 s',
    '59 s',
    '1 m 00 s',
    '2 m 05 s',
  ])
  expect([3_600_000, 90_000_000].map(durationText)).toEqual(['1 h 00 m', '1 d 01 h'])
  expect(countText(10_000)).toBe('10,000')
})

describe('the address', () => {
  it('keeps every name and filter', () => {
    for (const name of ['order:42', 'a/b?c#d&e=%20', '..', '.', 'größe\u202E\n', '<script>']) {
      const route = { view: 'resource' as const, name, space: 'a b&c', filter: NO_FILTER }
      expect(routeOf(hashOf(route))).toEqual(route)
    }
    const filter = { ...NO_FILTER, search: 'a+b&c', host: 'api 1', sort: 'name' }
    const route = { view: 'resources' as const, name: '', space: '', filter }
    expect(routeOf(hashOf(route))).toEqual(route)
    expect([isFiltering(filter), isFiltering({ ...NO_FILTER, sort: 'name' })]).toEqual([true, false])
  })

  it('leads to the resources where it makes no sense', () => {
    for (const hash of ['', '#', '#/', '#/r/', '#/r/%E0%A4%A', '#/nothing/here', '#?'])
      expect(routeOf(hash)).toMatchObject({ view: 'resources', name: '' })
  })
})

it('attempts to connect become rarer, up to a bound, and never meet', () => {
  expect([0, 1, 2, 3, 4, 5, 100].map((attempt) => backoffMs(attempt, 0))).toEqual([
    250, 500, 1000, 2000, 4000, 7500, 7500,
  ])
  expect([0, 100].map((attempt) => backoffMs(attempt, 0.999))).toEqual([500, 14_993])
})

const party = (part: Partial<Party>): Party => ({
  id: 'a',
  owner: 'o',
  host: 'host-3',
  pid: 71,
  label: null,
  permits: 2 ** 30,
  isWriter: true,
  since: '',
  expires: '',
  fence: 7,
  ...part,
})
const resource = (part: Partial<ResourceDetail>): ResourceDetail => ({
  name: 'order:42',
  kind: 'lock',
  capacity: null,
  asOf: '',
  used: 1,
  holders: [party({})],
  waiters: [],
  waitersTotal: 4,
  offset: 0,
  timeline: [],
  ...part,
})

describe('what a dialog says', () => {
  it('about breaking a hold', () => {
    expect(ofBreaking(resource({}), party({})).slice(0, 2)).toEqual([
      'host-3 (process 71) loses the lock at once. Its signal aborts.',
      'The next of 4 waiters gets it.',
    ])
    const readers = [party({ isWriter: false }), party({}), party({})]
    expect(ofBreaking(resource({ holders: readers, waitersTotal: 1 }), party({})).slice(1, 3)).toEqual([
      '2 other holders keep theirs.',
      'The one waiter gets it as soon as it fits.',
    ])
    const gpu = resource({ kind: 'semaphore', capacity: 4, waitersTotal: 0 })
    expect(ofBreaking(gpu, party({ permits: 2 })).slice(0, 2)).toEqual([
      'host-3 (process 71) loses the 2 permits at once. Its signal aborts.',
      'Nobody waits for it.',
    ])
  })

  it('about cancelling a waiter', () => {
    expect(ofCancelling(resource({}), party({ label: 'checkout' }), 1)[1]).toBe(
      '3 waiters behind it move up by one.',
    )
    expect(ofCancelling(resource({}), party({}), 3)[1]).toBe('1 waiter behind it moves up by one.')
    expect(ofCancelling(resource({}), party({}), 4)[1]).toBe('Nobody waits behind it.')
  })

  it('about resizing', () => {
    const gpu = resource({ kind: 'semaphore', capacity: 4, used: 4, waitersTotal: 2 })
    expect(ofResizing(gpu, 6)[0]).toBe(
      'From 4 to 6 permits. 2 permits can go to the 2 waiters at once, in order.',
    )
    expect(ofResizing(gpu, 1).slice(0, 2)).toEqual([
      'From 4 to 1 permit. Nobody is interrupted.',
      '3 permits too many stay in use until their holders leave. Nobody is granted before.',
    ])
    expect(ofResizing(gpu, 4)).toEqual(['It has 4 permits already.'])
    expect(ofResizing(gpu, Number.NaN)).toEqual(['Give a whole number from 1 on.'])
  })

  it('shows hidden characters of a name', () => {
    expect(nameOf(party({ host: '', owner: 'a\u202Eb', pid: 0 }))).toBe('a‹U+202E›b')
  })
})

describe('the timeline', () => {
  const entry = (
    id: string,
    state: 'held' | 'waited',
    fromMs: number,
    toMs: number | null,
  ): TimelineEntry => ({
    ...party({ id }),
    state,
    from: new Date(fromMs).toISOString(),
    to: toMs === null ? null : new Date(toMs).toISOString(),
    fence: null,
    end: null,
  })

  it('has a lane for each claim: holders, waiters, then the past', () => {
    const lanes = lanesOf(
      [
        entry('gone', 'held', 100_000, 150_000),
        entry('before', 'held', 0, 50_000),
        entry('waits', 'waited', 160_000, null),
        entry('holds', 'waited', 120_000, 150_000),
        entry('holds', 'held', 150_000, null),
      ],
      100_000,
      200_000,
    )
    expect(lanes.map(({ id }) => id)).toEqual(['holds', 'waits', 'gone'])
    expect(lanes[0]?.bars.map(({ from, to, isOpen }) => ({ from, to, isOpen }))).toEqual([
      { from: 0.2, to: 0.5, isOpen: false },
      { from: 0.5, to: 1, isOpen: true },
    ])
  })

  it('shows as much time as it needs', () => {
    const spans = [10_000, 30_000, 45_000, 100_000, 200_000, 900_000].map(
      (ageMs) => spanOf([entry('a', 'held', 1_000_000 - ageMs, null)], 1_000_000).ms,
    )
    expect(spans).toEqual([30_000, 30_000, 60_000, 120_000, 300_000, 300_000])
  })
})
