import type { ClaimReply, ClaimRequest, ClaimView, Push, StateValue, Waiting } from '../../contract/store.js'

/** Everything that a store keeps, as the model sees it; see `../model.ts`. */
export interface Model {
  /** The claims of all resources; those of one resource stand in the order of its line. */
  readonly claims: readonly ModelClaim[]
  /** The capacities that `resize` set. */
  readonly pins: readonly { resource: string; declared: number; capacity: number }[]
  readonly values: readonly { key: string; value: string; version: number; deadline: number }[]
  readonly watches: readonly { key: string; client: string }[]
  /** The numbers given so far; the first is number 1. */
  readonly given: readonly Given[]
}

export interface ModelClaim {
  readonly client: string
  readonly request: ClaimRequest
  permits: number
  /** What its claimant, or the one whose place it took, declared. */
  readonly capacity: number
  /** null: it waits. */
  fence: number | null
  since: number
  deadline: number
}

/** What a store's number was given for; `named`: the beat of a hold has asked for it. */
export interface Given {
  readonly kind: 'hold' | 'named' | 'block' | 'version'
  /** The resource, or the key. */
  readonly name: string
  /** The claim that it was given to; none for a version. */
  readonly id: string | null
  /** How many successive numbers belong to it. */
  readonly size: number
  /** What the claimant had seen. */
  readonly floor: number
}

export interface Told {
  readonly client: string
  readonly news: Push
}

/** What one call leads to. */
export interface Outcome<R> {
  readonly model: Model
  readonly reply: R
  readonly pushes: readonly Told[]
}

export const emptyModel: Model = { claims: [], pins: [], values: [], watches: [], given: [] }

/** A copy of the model that one step may change as it likes. */
export interface Draft {
  readonly now: number
  claims: ModelClaim[]
  pins: { resource: string; declared: number; capacity: number }[]
  values: { key: string; value: string; version: number; deadline: number }[]
  watches: { key: string; client: string }[]
  given: Given[]
  pushes: Told[]
}

export function step<R>(model: Model, now: number, work: (draft: Draft) => R): Outcome<R> {
  const draft: Draft = {
    now,
    claims: model.claims.map((each) => ({ ...each })),
    pins: [...model.pins],
    values: [...model.values],
    watches: [...model.watches],
    given: [...model.given],
    pushes: [],
  }
  const reply = work(draft)
  const { claims, pins, values, watches, given, pushes } = draft
  return { model: { claims, pins, values, watches, given }, reply, pushes }
}

export function tidy(draft: Draft, resource: string): void {
  dropLapsed(draft, resource)
  promote(draft, resource)
}

export function dropLapsed(draft: Draft, resource: string): void {
  draft.claims = draft.claims.filter(
    (each) => each.request.resource !== resource || each.deadline > draft.now,
  )
}

/** The admission rule: the holds are the longest prefix of the line whose permits fit. */
export function fittingPrefix(draft: Draft, resource: string): ModelClaim[] {
  const line = lineOf(draft, resource)
  const capacity = capacityOf(draft, resource) ?? 0
  for (let length = line.length; length > 0; length--) {
    const prefix = line.slice(0, length)
    if (prefix.reduce((sum, each) => sum + each.permits, 0) <= capacity) return prefix
  }
  return []
}

export function promote(draft: Draft, resource: string): void {
  for (const each of fittingPrefix(draft, resource)) {
    if (each.fence !== null) continue
    const fence = grant(draft, each)
    // The deadline stays that of the place in line: only a pulse of its own proves that the
    // claimant lives.
    each.deadline = Math.min(each.deadline, latestEnd(each))
    const { id } = each.request
    draft.pushes.push({ client: each.client, news: { type: 'granted', resource, id, fence } })
  }
}

export function grantAtOnce(draft: Draft, newcomer: ModelClaim): void {
  grant(draft, newcomer)
  newcomer.deadline = Math.min(draft.now + newcomer.request.leaseMs, latestEnd(newcomer))
}

function grant(draft: Draft, each: ModelClaim): number {
  const { resource, id, block, floor } = each.request
  const fence = give(draft, { kind: 'hold', name: resource, id, size: block, floor })
  each.fence = fence
  each.since = draft.now
  return fence
}

/** Gives the next number: its place in the order of giving, which is the new length of the list. */
export function give(draft: Draft, given: Given): number {
  return draft.given.push(given)
}

/** The newest fence of a resource. */
export function newestOf(draft: Draft, resource: string): number {
  return 1 + draft.given.findLastIndex(({ kind, name }) => kind !== 'version' && name === resource)
}

export function newClaim(
  draft: Draft,
  client: string,
  request: ClaimRequest,
  permits: number,
  capacity: number,
): ModelClaim {
  const deadline = draft.now + request.presenceMs
  return { client, request, permits, capacity, fence: null, since: draft.now, deadline }
}

export function revoke(draft: Draft, each: ModelClaim): void {
  remove(draft, each)
  tellLost(draft, each)
}

export function tellLost(draft: Draft, { client, request }: ModelClaim): void {
  draft.pushes.push({ client, news: { type: 'lost', resource: request.resource, id: request.id } })
}

export function remove(draft: Draft, gone: ModelClaim): void {
  draft.claims = draft.claims.filter((each) => each !== gone)
}

export function answer(draft: Draft, each: ModelClaim): ClaimReply {
  if (each.fence === null) return waiting(draft, each)
  const isWanted = isWaitedFor(draft, each.request.resource)
  return { status: 'granted', fence: each.fence, leaseMs: each.deadline - draft.now, isWanted }
}

export function isWaitedFor(draft: Draft, resource: string): boolean {
  return lineOf(draft, resource).some((each) => each.fence === null)
}

export function waiting(draft: Draft, each: ModelClaim): Waiting {
  const { resource } = each.request
  const isNext = lineOf(draft, resource).find((other) => other.fence === null) === each
  const ends = holdsOf(draft, resource).map((hold) => hold.deadline - draft.now)
  const freeInMs = isNext && ends.length > 0 ? Math.min(...ends) : null
  // Which number a store names as `grantsAbove` is up to the store, too; `histories/ledger.ts`
  // checks what it promises.
  return { status: 'waiting', presenceMs: each.deadline - draft.now, isNext, freeInMs, grantsAbove: 0 }
}

export function viewOf({ request, permits, fence, since, deadline }: ModelClaim, now: number): ClaimView {
  const { id, info } = request
  return { id, permits, fence, info, ageMs: now - since, expiresInMs: deadline - now }
}

export function latestEnd({ request, since }: ModelClaim): number {
  return request.maxHoldMs === null ? Infinity : since + request.maxHoldMs
}

export function lineOf(draft: Draft, resource: string): ModelClaim[] {
  return draft.claims.filter((each) => each.request.resource === resource)
}

export function holdsOf(draft: Draft, resource: string): ModelClaim[] {
  return lineOf(draft, resource).filter((each) => each.fence !== null)
}

export function find(draft: Draft, resource: string, id: string): ModelClaim | undefined {
  return lineOf(draft, resource).find((each) => each.request.id === id)
}

export function pinOf(draft: Draft, resource: string): { declared: number; capacity: number } | undefined {
  return draft.pins.find((each) => each.resource === resource)
}

export function capacityOf(draft: Draft, resource: string): number | undefined {
  return pinOf(draft, resource)?.capacity ?? lineOf(draft, resource)[0]?.capacity
}

export function stateOf(draft: Draft, key: string): StateValue | null {
  const found = draft.values.find((each) => each.key === key && each.deadline > draft.now)
  return found ? { value: found.value, version: found.version } : null
}
