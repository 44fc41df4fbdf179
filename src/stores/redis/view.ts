import type { ClaimView, LineView } from '../../contract/store.js'
import { CLAIM, parseFields, QUEUE, SINGLE } from './lua/format.js'
import { fromToken } from './names.js'
import { toMs } from './replies.js'

type Claim = NonNullable<ReturnType<typeof parseClaim>>

/** A line's hash for people. null: it has no claims, and nothing is pinned. */
export function lineView(
  resource: string,
  serverUs: number,
  hash: ReadonlyMap<string, string>,
): LineView | null {
  const head = hash.get('#')
  if (head === undefined) return null
  const { first, pinned, declared, nowUs, single } = parseHead(head, serverUs)
  const claims: ClaimView[] = []
  let capacity = pinned
  for (let id = first; id !== '-'; ) {
    const claim = single ?? parseClaim(parseFields(CLAIM, hash.get(id) ?? ''))
    if (!claim) break
    if (claim.expires > nowUs) {
      capacity ??= claim.capacity
      claims.push(claimView(id, claim, nowUs))
    }
    id = claim.next
  }
  if (capacity === undefined) return null
  const view = { resource, capacity, claims }
  return declared === undefined ? view : { ...view, declared }
}

interface Head {
  readonly first: string
  readonly pinned: number | undefined
  /** With `pinned`: what claims may declare as well. */
  readonly declared: number | undefined
  readonly nowUs: number
  /** The only claim, in the form SINGLE. */
  readonly single: Claim | null
}

function parseHead(text: string, serverUs: number): Head {
  const queue = parseFields(QUEUE, text)
  if (queue) {
    const { seen, offset, head, pinned, declared } = queue
    return {
      first: head,
      pinned: toNumber(pinned),
      declared: toNumber(declared),
      nowUs: Math.max(serverUs + Number(offset), Number(seen)),
      single: null,
    }
  }
  const fields = parseFields(SINGLE, text)
  const nowUs = Math.max(serverUs, Number(fields?.seen ?? 0))
  const single = parseClaim(fields)
  return { first: fields?.id ?? '-', pinned: undefined, declared: undefined, nowUs, single }
}

function toNumber(text: string): number | undefined {
  return text === '-' ? undefined : Number(text)
}

function parseClaim(fields: ReturnType<typeof parseFields<(typeof CLAIM.fields)[number]>>) {
  if (!fields) return null
  const { next, fence, expires, since, permits, capacity, info } = fields
  return {
    fence: Number(fence),
    expires: Number(expires),
    since: Number(since),
    permits: Number(permits),
    capacity: Number(capacity),
    next,
    info,
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
