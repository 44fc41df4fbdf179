import { invalid } from '../base/errors.js'
import { parseInfo } from '../primitives/views.js'
import { type SeenLine, summaryOf } from './lines.js'
import type { Poller } from './poller.js'
import type { ResourceList } from './shapes.js'
import { totalsOf } from './totals.js'

const MOST_OF_A_PAGE = 1000
const STATES = ['held', 'waited', 'free'] as const
const SORTS = ['contended', 'name', 'oldest'] as const

/** What `GET api/resources` asks for. */
interface ListQuery {
  readonly prefix: string
  readonly search: string
  readonly state: (typeof STATES)[number] | null
  readonly host: string
  readonly label: string
  readonly sort: (typeof SORTS)[number]
  readonly offset: number
  readonly limit: number
}

export function listResources(poller: Poller, params: URLSearchParams): ResourceList {
  const query = readQuery(params)
  const { lines, asOfMs } = poller
  const found = sorted([...lines.values()].filter(matcherOf(query)), query.sort)
  const page = found.slice(query.offset, query.offset + query.limit)
  return {
    ...totalsOf(poller),
    found: found.length,
    resources: page.map((line) => summaryOf(line, asOfMs)),
  }
}

/** The longest lines first; of equally long ones, by name. */
export function mostContendedFirst(lines: Iterable<SeenLine>): SeenLine[] {
  return sorted([...lines], 'contended')
}

function readQuery(params: URLSearchParams): ListQuery {
  return {
    prefix: params.get('prefix') ?? '',
    search: (params.get('search') ?? '').toLowerCase(),
    state: oneOf('state', params.get('state'), STATES),
    host: (params.get('host') ?? '').toLowerCase(),
    label: (params.get('label') ?? '').toLowerCase(),
    sort: oneOf('sort', params.get('sort'), SORTS) ?? 'contended',
    ...readPage(params, 100),
  }
}

/** Which part of a long list is asked for. */
export function readPage(params: URLSearchParams, usual: number): { offset: number; limit: number } {
  return {
    offset: wholeNumber('offset', params.get('offset'), 0, Number.MAX_SAFE_INTEGER),
    limit: wholeNumber('limit', params.get('limit'), usual, MOST_OF_A_PAGE),
  }
}

function oneOf<T extends string>(name: string, value: string | null, known: readonly T[]): T | null {
  if (value === null || value === '') return null
  const found = known.find((each) => each === value)
  if (found === undefined) throw invalid(`${name} must be one of ${known.join(', ')}`)
  return found
}

function wholeNumber(name: string, text: string | null, usual: number, most: number): number {
  if (text === null || text === '') return usual
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(value)) throw invalid(`${name} must be a whole number`)
  return Math.min(value, most)
}

function matcherOf(query: ListQuery): (line: SeenLine) => boolean {
  const { prefix, search, state, host, label } = query
  return (line) =>
    line.name.startsWith(prefix) &&
    (search === '' || line.name.toLowerCase().includes(search)) &&
    (state === null || isIn(line, state)) &&
    ((host === '' && label === '') || hasClaimOf(line, host, label))
}

function isIn({ claims, holders }: SeenLine, state: (typeof STATES)[number]): boolean {
  if (state === 'held') return holders > 0
  return state === 'waited' ? claims.length > holders : holders === 0
}

/** Whether one claim in the line comes from that host, and has that label. */
function hasClaimOf({ claims }: SeenLine, host: string, label: string): boolean {
  return claims.some((claim) => {
    const info = parseInfo(claim)
    return info.host.toLowerCase().includes(host) && (info.label ?? '').toLowerCase().includes(label)
  })
}

function sorted(lines: SeenLine[], sort: (typeof SORTS)[number]): SeenLine[] {
  const waiters = ({ claims, holders }: SeenLine): number => claims.length - holders
  const waitingSince = ({ claims, holders }: SeenLine): number => claims[holders]?.sinceMs ?? Infinity
  const byName = (a: SeenLine, b: SeenLine): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)
  const compare: Record<typeof sort, (a: SeenLine, b: SeenLine) => number> = {
    contended: (a, b) => waiters(b) - waiters(a) || b.holders - a.holders || byName(a, b),
    oldest: (a, b) => difference(waitingSince(a), waitingSince(b)) || byName(a, b),
    name: byName,
  }
  return lines.sort(compare[sort])
}

/** As a comparison needs it: two that never waited are equal. */
function difference(a: number, b: number): number {
  return a === b ? 0 : a - b
}
