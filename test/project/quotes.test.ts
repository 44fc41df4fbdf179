import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { EXIT } from '../../src/cli/exit-codes.js'
import { pageOf } from './pages.js'
import { expectNone, root } from './sources.js'

/**
 * What pages say. In braces: the file and the name of a constant, and the unit in which the page
 * gives it, if it is another one.
 */
const QUOTES: Readonly<Record<string, readonly string[]>> = {
  'docs/client.md': [
    "| `lease` | `'{primitives/options.ts DEFAULT_LEASE_MS s}s'` |",
    "at most `'{primitives/options.ts LONGEST_PRESENCE_MS s}s'`",
    "| `storeTimeout` | `'{primitives/holdfast.ts storeTimeout}s'` |",
    "| `drain` | `'{primitives/holdfast.ts DEFAULT_DRAIN}s'` |",
  ],
  'docs/mutex.md': [
    'without a heartbeat; at least {primitives/options.ts SHORTEST_LEASE_MS} ms',
    "| `lease` | `'{primitives/options.ts DEFAULT_LEASE_MS s}s'` |",
    'as long as its lease, at most {primitives/options.ts LONGEST_PRESENCE_MS s} s',
    'after `storeTimeout` ({primitives/holdfast.ts storeTimeout} s)',
    'the `drain` ({primitives/holdfast.ts DEFAULT_DRAIN} s)',
    '1 to {base/names.ts MAX_NAME_BYTES} bytes of UTF-8',
  ],
  'docs/guarantees.md': ['within `storeTimeout` ({primitives/holdfast.ts storeTimeout} s)'],
  'docs/errors.md': [
    'up to {calls/calls.ts HEALTHY_MS s} s from the request, and at least {engine/request.ts LATE_ANSWER_MS} ms',
    'the store has `storeTimeout` ({primitives/holdfast.ts storeTimeout} s)',
  ],
  'docs/order.md': ['up to {engine/turn.ts HOLDS_PER_TURN} holds or {engine/turn.ts LONGEST_TURN_MS} ms'],
  'docs/lingering.md': ['at most {engine/turn.ts LONGEST_TURN_MS} ms; more is refused'],
  'docs/closing.md': [
    'The default is {primitives/holdfast.ts DEFAULT_DRAIN} seconds',
    '`storeTimeout` ({primitives/holdfast.ts storeTimeout} s) plus {engine/closing.ts LEAST_CLOSE_MS s} s',
  ],
  'docs/semaphore.md': ['from 1 to 2^{contract/constants.ts EXCLUSIVE log2} - 1'],
  'docs/striped-lock.md': ['1 to {primitives/striped.ts MOST_SEGMENTS} segments'],
  'docs/election.md': [
    "| `lease` | `'{primitives/options.ts DEFAULT_LEASE_MS s}s'` |",
    'the last {primitives/election.ts REMEMBERED} leaders',
    'kept for {primitives/election.ts RETENTION_MS d} days',
    'misses more than {primitives/election.ts REMEMBERED} changes',
    'after `storeTimeout` ({primitives/holdfast.ts storeTimeout} s)',
  ],
  'docs/once.md': [
    "`'{primitives/once.ts DEFAULT_LEASE_MS s}s'`, at most `atMost`",
    'after `storeTimeout` ({primitives/holdfast.ts storeTimeout} s)',
  ],
  'docs/latch.md': [
    'fewer than {primitives/latch.ts REMEMBERED} other changes',
    'the latest {primitives/latch.ts REMEMBERED} changes',
    'they check every {states/state-watch.ts POLL_EVERY_MS s} seconds',
    'after `storeTimeout` ({primitives/holdfast.ts storeTimeout} s)',
  ],
  'docs/barrier.md': [
    '1 to {primitives/barrier.ts MOST_PARTIES} parties',
    "| `lease` | `'{primitives/options.ts DEFAULT_LEASE_MS s}s'` |",
    '({primitives/barrier.ts REMEMBERED}, or all of the last round)',
    'kept for {primitives/barrier.ts RETENTION_MS d} days',
    'after `storeTimeout` ({primitives/holdfast.ts storeTimeout} s)',
  ],
  'docs/conformance.md': [
    'after {testing/conformance/cases.ts CASE_LIMIT_MS s} seconds, or after {testing/conformance/cases.ts HEAVY_LIMIT_MS s} seconds',
  ],
  'docs/web-locks.md': ['at most {base/names.ts MAX_NAME_BYTES} bytes'],
  'docs/design.md': [
    'capacity 2^{contract/constants.ts EXCLUSIVE log2}',
    'but at most {primitives/options.ts LONGEST_PRESENCE_MS s} s',
    'every {states/state-watch.ts POLL_EVERY_MS s} seconds',
  ],
  'docs/events.md': ['2^{contract/constants.ts EXCLUSIVE log2} for a mutex'],
  'docs/metrics.md': ['the first {observe/label-sets.ts MOST_LABEL_SETS} sets of labels'],
  'docs/cli.md': [
    '| `--grace 10s` | {cli/run-request.ts DEFAULT_GRACE}s |',
    '| `--lease 30s` | {primitives/options.ts DEFAULT_LEASE_MS s}s |',
    '[--interval {cli/top.ts DEFAULT_INTERVAL_MS s}s]',
  ],
  'docs/redlock.md': ["`longestDuration`, `'{redlock/clients.ts longestDuration}m'` by default"],
  'docs/stores/sqlite.md': [
    'after {stores/sqlite/batches.ts STUCK_AFTER_MS s} s',
    'polls, every {stores/sqlite/store.ts askNextEveryMs} ms',
    'The schema version is {stores/sqlite/schema.ts SCHEMA_VERSION}',
    '`application_id` is {stores/sqlite/schema.ts APPLICATION_ID hex}',
  ],
  'docs/stores/redis.md': [
    'sends itself a ping every {stores/redis/subscription.ts PING_INTERVAL_MS s} seconds',
    'reads {stores/redis/inspection.ts LINES_OF_ONE_CALL} lines with each call',
    'with SCAN, {stores/redis/ioredis.ts KEYS_AT_ONCE} at a time',
    'up to {stores/redis/batcher.ts MOST_CALLS} in one script call',
  ],
  'docs/stores/postgres.md': [
    'and then every {stores/postgres/subscription.ts PING_INTERVAL_MS s} seconds',
    'looks every {states/state-watch.ts POLL_EVERY_MS s} seconds',
    'within {database-locks/limits.ts ANSWER_MS s} seconds if `wait` is shorter',
    'takes at most {database-locks/sessions/waiting-sessions.ts WAIT_MS s} seconds',
    'or {database-locks/sessions/waiting-sessions.ts CROWDED_WAIT_MS s} seconds while more locks',
    'after {database-locks/sessions/lock-queue.ts FIRST_PAUSE_MS} ms at first and at most {database-locks/sessions/lock-queue.ts LONGEST_PAUSE_MS} ms',
    'does not answer for {database-locks/postgres/advisory-backend.ts SILENT_AFTER_MS s} seconds',
    'the advisory lock {stores/postgres/schema.ts INSTALL_LOCK}',
    'after {engine/turn.ts HOLDS_PER_TURN} holds or {engine/turn.ts LONGEST_TURN_MS} ms',
  ],
  'docs/stores/mysql.md': [
    'has not answered for {stores/mysql/runner.ts SILENT_AFTER_MS s} seconds',
    'at least every {stores/shared/poll-interval.ts LONGEST_MS} ms',
    '{stores/shared/poll-interval.ts LONGEST_MS_PER_CLIENT} ms for each process',
    'within {database-locks/limits.ts ANSWER_MS s} seconds if `wait` is shorter',
    '`GET_LOCK(name, {database-locks/sessions/waiting-sessions.ts WAIT_MS s})`',
    'takes {database-locks/sessions/waiting-sessions.ts CROWDED_WAIT_MS s} seconds instead of {database-locks/sessions/waiting-sessions.ts WAIT_MS s}',
    'every {database-locks/sessions/lock-queue.ts FIRST_PAUSE_MS} to {database-locks/sessions/lock-queue.ts LONGEST_PAUSE_MS} ms',
    'an idle connection every {database-locks/mysql/session-backend.ts PING_EVERY_MS s} seconds',
    'is silent for {database-locks/mysql/session-backend.ts SILENT_AFTER_MS s} seconds',
    'every {engine/turn.ts HOLDS_PER_TURN} holds or {engine/turn.ts LONGEST_TURN_MS} ms',
  ],
  'docs/stores/zookeeper.md': [
    "| `sessionTimeout` | `'{drivers/zookeeper/options.ts DEFAULT_SESSION_TIMEOUT_MS s}s'` |",
    "| `tick` | `'{drivers/zookeeper/options.ts DEFAULT_TICK_MS s}s'` |",
    'blocks of {stores/zookeeper/names.ts FENCES_EACH} fences',
    'within about {stores/zookeeper/own-nodes.ts WATCH_AFTER_MS} ms',
  ],
  'docs/stores/etcd.md': [
    "| `ttl` | `'{stores/etcd/index.ts DEFAULT_TTL_MS s}s'` |",
    "| `requestTimeout` | `'{drivers/etcd/options.ts DEFAULT_REQUEST_TIMEOUT_MS s}s'` |",
    'for longer than {stores/etcd/line.ts WATCH_AFTER_MS} ms',
    'blocks of {stores/etcd/rows.ts FENCES_EACH} fences',
  ],
  'docs/stores/quorum.md': [
    'after {stores/quorum/identity.ts FOUNDING_PATIENCE_MS s} seconds and `longestLease`',
  ],
}

const UNITS: Readonly<Record<string, (value: number) => number | string>> = {
  s: (value) => value / 1000,
  d: (value) => value / 86_400_000,
  log2: Math.log2,
  hex: (value) => `0x${value.toString(16)}`,
}

/**
 * The value behind `NAME = …`, `name: …` or `name ?? …`: a number, a product or power of numbers,
 * or the number in a text such as `'10s'`.
 */
function numberOf(constant: string): string {
  const [file = '', name = '', unit] = constant.split(' ')
  const code = readFileSync(join(root, 'src', file), 'utf8')
  const assigned = new RegExp(`\\b${name}(?:: \\w+)?(?: =|:| \\?\\?) (\\d[\\w* ]*|'\\d+[a-z]*')`)
  const found = assigned.exec(code)?.[1]?.trim()
  if (found === undefined) throw new Error(`src/${file} has no ${name}`)
  const quoted = /^'(\d+)[a-z]*'$/.exec(found)?.[1]
  if (quoted !== undefined) return quoted
  const value = productOf(found)
  if (!Number.isFinite(value)) throw new Error(`src/${file}: ${name} is ${found}, which is no number`)
  return String(unit === undefined ? value : UNITS[unit]?.(value))
}

function productOf(expression: string): number {
  return expression
    .split(' * ')
    .map((factor) => factor.split(' ** ').map((each) => Number(each.replaceAll('_', ''))))
    .reduce((product, [base = Number.NaN, power = 1]) => product * base ** power, 1)
}

/** The quote as the page has to say it. */
function filled(quote: string): string {
  return quote.replace(/\{([^}]+)\}/g, (_, constant: string) => numberOf(constant))
}

/** Lines may break anywhere, and large numbers may have commas. */
function saysSo(page: string, quote: string): boolean {
  const oneLine = page.replace(/\s+/g, ' ').replace(/(?<=\d),(?=\d{3}\b)/g, '')
  return oneLine.includes(filled(quote))
}

describe('what pages quote from the code', () => {
  it.each(Object.entries(QUOTES))('%s: numbers', (path, quotes) => {
    const { text } = pageOf(path)
    const wrong = quotes.filter((quote) => !saysSo(text, quote))
    expectNone(
      wrong.map((quote) => `${path}: ${filled(quote)}`),
      'The page says something else than the code (or its words have changed: then change the quote here):',
    )
  })

  it('docs/errors.md: every error code, and no other', () => {
    const codes = union('src/base/errors.ts', 'ErrorCode')
    const rows = [...pageOf('docs/errors.md').text.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, code]) => code)
    expect(rows.sort()).toEqual(codes.sort())
  })

  it('docs/cli.md: every exit code', () => {
    const rows = [...pageOf('docs/cli.md').text.matchAll(/^\| (\d+)(?: \+ n)? \|/gm)].map(([, code]) =>
      Number(code),
    )
    expect(rows).toEqual([...new Set(Object.values(EXIT))].sort((one, other) => one - other))
  })

  it('docs/events.md: every primitive and outcome', () => {
    const { text } = pageOf('docs/events.md')
    const names = ['Primitive', 'AcquireOutcome', 'HoldEnd'].flatMap((type) =>
      union('src/base/events.ts', type),
    )
    expect(names.length).toBeGreaterThan(15)
    expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([])
  })

  it('docs/metrics.md: every metric', () => {
    const { text } = pageOf('docs/metrics.md')
    const source = readFileSync(join(root, 'src/observe/definitions.ts'), 'utf8')
    const names = [...source.matchAll(/(?:name|prometheus): '([\w.]+)'/g)].map(([, name = '']) => name)
    expect(names.length).toBeGreaterThan(10)
    expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([])
  })
})

/** The members of a type that is a union of texts. */
function union(path: string, type: string): string[] {
  const source = readFileSync(join(root, path), 'utf8')
  const body = new RegExp(`type ${type} =([^;]*?)\\n\\n`).exec(source)?.[1] ?? ''
  return [...body.matchAll(/'([\w-]+)'/g)].map(([, member = '']) => member)
}

describe('the check of numbers', () => {
  it('reads numbers, powers, products and durations', () => {
    expect(numberOf('contract/constants.ts EXCLUSIVE log2')).toBe('30')
    expect(numberOf('primitives/barrier.ts RETENTION_MS d')).toBe('30')
    expect(numberOf('primitives/holdfast.ts storeTimeout')).toBe('10')
    expect(() => numberOf('engine/turn.ts NOWHERE')).toThrow('no NOWHERE')
  })

  it('notices another number', () => {
    const quote = 'at most {engine/turn.ts HOLDS_PER_TURN} holds'
    expect(saysSo('at\nmost 64 holds', quote)).toBe(true)
    expect(saysSo('at most 65 holds', quote)).toBe(false)
    expect(saysSo('1 to 10,000 segments', '1 to {primitives/striped.ts MOST_SEGMENTS} segments')).toBe(true)
  })
})
