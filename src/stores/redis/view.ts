import type { ClaimView, LineView } from '../../contract/store.js'
import { fromToken } from './names.js'
import { toMs } from './replies.js'

interface Claim {
  readonly fence: number
  readonly expires: number
  readonly since: number
  readonly permits: number
  readonly capacity: number
  readonly next: string
  readonly info: string
}

/** A line's hash, as `lua/line.ts` describes it, for people. null: nobody is in it, and nothing is pinned. */
export function lineView(
  resource: string,
  serverUs: number,
  hash: ReadonlyMap<string, string>,
): LineView | null {
  const head = hash.get('#')
  if (head === undefined) return null
  const { first, pinned, nowUs, lone } = parseHead(head, serverUs)
  const claims: ClaimView[] = []
  let capacity = pinned
  for (let id = first; id !== '-'; ) {
    const claim = lone ?? parseClaim(hash.get(id) ?? '')
    if (!claim) break
    if (claim.expires > nowUs) {
      capacity ??= claim.capacity
      claims.push(claimView(id, claim, nowUs))
    }
    id = claim.next
  }
  return capacity === undefined ? null : { resource, capacity, claims }
}

interface Head {
  readonly first: string
  readonly pinned: number | undefined
  readonly nowUs: number
  /** The only claim, where there is just one. */
  readonly lone: Claim | null
}

function parseHead(text: string, serverUs: number): Head {
  if (text.startsWith('line ')) {
    const tokens = text.split(' ')
    const [seen, offset, first = '-', pinned] = [tokens[3], tokens[4], tokens[8], tokens[12]]
    return {
      first,
      pinned: pinned === '-' ? undefined : Number(pinned),
      nowUs: Math.max(serverUs + Number(offset), Number(seen)),
      lone: null,
    }
  }
  const [, seen, first = '-', claim = ''] = /^\d+ \d+ (\d+) (\S+) (.*)$/s.exec(text) ?? []
  return { first, pinned: undefined, nowUs: Math.max(serverUs, Number(seen ?? 0)), lone: parseClaim(claim) }
}

function parseClaim(text: string): Claim | null {
  const match = /^(\S+) \S+ (\d+) (\d+) (\d+) (\d+) (\d+) \d+ \d+ \d+ \S+ (.*)$/s.exec(text)
  if (!match) return null
  const [fence, expires, since, permits, capacity] = match.slice(2, 7).map(Number)
  return {
    fence: fence ?? 0,
    expires: expires ?? 0,
    since: since ?? 0,
    permits: permits ?? 0,
    capacity: capacity ?? 0,
    next: match[1] ?? '-',
    info: match[7] ?? '',
  }
}

function claimView(id: string, claim: Claim, nowUs: number): ClaimView {
  return {
    id: fromToken(id),
    permits: claim.permits,
    fence: claim.fence === 0 ? null : claim.fence,
    info: claim.info,
    ageMs: toMs(String(nowUs - claim.since)),
    expiresInMs: toMs(String(claim.expires - nowUs)),
  }
}
