import assert from 'node:assert/strict'
import { EXCLUSIVE } from '../../contract/constants.js'
import type { Push } from '../../contract/store.js'

/** What one step of a history shows from outside. */
export interface Sight {
  readonly reply: unknown
  /** What each client was told. */
  readonly pushes: ReadonlyMap<string, readonly Push[]>
  /** All lines, as `inspect` shows them. */
  readonly lines: readonly unknown[]
}

/** Checked elsewhere, since stores choose them. */
const CHOSEN_FIELDS = new Set(['grantsAbove', 'heirs', 'waitedMs'])
/** Only whether it is there is compared. */
const NEWEST_FIELD = 'newest'
const DURATION_FIELDS = new Set(['leaseMs', 'presenceMs', 'freeInMs', 'ageMs', 'expiresInMs'])

/**
 * The sight as plain data that can be compared: no class, no `undefined`, and no durations where
 * the clock is not ours.
 */
export function plain(sight: Sight, clock: 'injected' | 'server'): unknown {
  const pushes = [...sight.pushes].filter(([, news]) => news.length > 0)
  const toldOf = (news: Push): string =>
    'id' in news ? `${news.resource} ${news.id}` : news.type === 'state' ? news.key : ''
  return plainValue(
    {
      reply: sight.reply,
      // What concerns one claim must come in order; what concerns several may overtake each other.
      pushes: Object.fromEntries(
        pushes.map(([client, news]) => [
          client,
          news.toSorted((a, b) => (toldOf(a) < toldOf(b) ? -1 : Number(toldOf(a) > toldOf(b)))),
        ]),
      ),
      lines: sight.lines,
    },
    clock,
  )
}

function plainValue(value: unknown, clock: 'injected' | 'server'): unknown {
  if (Array.isArray(value)) return value.map((each) => plainValue(each, clock))
  if (typeof value !== 'object' || value === null) return value
  const isCompared = (key: string): boolean =>
    !CHOSEN_FIELDS.has(key) && !(clock === 'server' && DURATION_FIELDS.has(key))
  const fields = Object.entries(value)
    .filter(([key, field]) => field !== undefined && isCompared(key))
    .map(([key, field]) => [key, key === NEWEST_FIELD ? true : plainValue(field, clock)])
  return Object.fromEntries(fields)
}

export function assertSame(actual: unknown, expected: unknown): void {
  assert.deepStrictEqual(actual, asFarAsTold(expected, actual))
}

/** A store may leave out whether others wait, but not say it wrongly. */
function asFarAsTold(expected: unknown, actual: unknown): unknown {
  if (Array.isArray(expected))
    return expected.map((each, index) => asFarAsTold(each, Array.isArray(actual) ? actual[index] : undefined))
  if (typeof expected !== 'object' || expected === null) return expected
  const told = Object(actual) as Record<string, unknown>
  const fields = Object.entries(expected)
    .filter(([key]) => key !== 'isWanted' || 'isWanted' in told)
    .map(([key, field]) => [key, asFarAsTold(field, told[key])])
  return Object.fromEntries(fields)
}

/** Data for people: short, with the exclusive capacity by its name. */
export function show(value: unknown): string {
  if (value === undefined) return ''
  return JSON.stringify(value)
    .replaceAll(/"(\w+)":/g, '$1: ')
    .replaceAll(',', ', ')
    .replaceAll(String(EXCLUSIVE), 'W')
}
