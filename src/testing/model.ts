import { EXCLUSIVE } from '../contract/constants.js'
import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClaimView,
  LineView,
  StateChange,
  StateOutcome,
  StateValue,
  StateView,
} from '../contract/store.js'
import {
  answer,
  capacityOf,
  type Draft,
  dropLapsed,
  find,
  fittingPrefix,
  give,
  grantAtOnce,
  holdsOf,
  isWaitedFor,
  latestEnd,
  lineOf,
  type Model,
  type ModelClaim,
  newClaim,
  newestOf,
  type Outcome,
  pinOf,
  promote,
  remove,
  revoke,
  stateOf,
  step,
  tellLost,
  tidy,
  viewOf,
  waiting,
} from './model/draft.js'

export {
  emptyModel,
  type Given,
  type Model,
  type Outcome,
  type Told,
} from './model/draft.js'

/*
 * The store contract once more, as plainly as it can be said: what a store is compared with. It
 * shares no code with any store, copies everything at every step, and is slow. Time is an argument.
 *
 * Which fence a store gives is the store's business, so the model only counts: wherever a store has
 * a fence, a block or a version, the model has the place of that number in the order of giving (1,
 * 2, 3 …), and `given` tells what each is for. The fences that a beat names are placed in that
 * order, too: 2.5 comes after the second and before the third, Infinity after all.
 */

export function claim(model: Model, now: number, client: string, request: ClaimRequest): Outcome<ClaimReply> {
  return step(model, now, (draft) => {
    tidy(draft, request.resource)
    const same = find(draft, request.resource, request.id)
    if (same) return answer(draft, same)
    if (request.adopts) return adopt(draft, client, request, request.adopts)
    const capacity = capacityOf(draft, request.resource) ?? request.capacity
    const declared = pinOf(draft, request.resource)?.declared ?? capacity
    if (![capacity, declared].includes(request.capacity) || request.permits > capacity)
      return { status: 'refused', reason: 'capacity', capacity }

    const newcomer = newClaim(draft, client, request, request.permits, request.capacity)
    if (request.mode === 'steal') {
      for (const hold of holdsOf(draft, request.resource)) revoke(draft, hold)
      draft.claims.unshift(newcomer)
    } else {
      draft.claims.push(newcomer)
    }
    if (fittingPrefix(draft, request.resource).includes(newcomer)) {
      grantAtOnce(draft, newcomer)
      promote(draft, request.resource)
      return answer(draft, newcomer)
    }
    const before = lineOf(draft, request.resource).filter((each) => each.fence === null && each !== newcomer)
    const isFull = before.length >= (request.maxWaiters ?? Infinity)
    if (request.mode === 'queue' && !isFull) return answer(draft, newcomer)
    remove(draft, newcomer)
    return { status: 'refused', reason: request.mode === 'queue' ? 'full' : 'busy' }
  })
}

export function pulse(model: Model, now: number, beats: readonly Beat[]): Outcome<BeatReply[]> {
  return step(model, now, (draft) => {
    for (const beat of beats) tidy(draft, beat.resource)
    const reserved = new Set<Beat>()
    for (const beat of beats) {
      const mine = find(draft, beat.resource, beat.id)
      if (!mine) continue
      const wish = now + (mine.fence === null ? beat.presenceMs : beat.leaseMs)
      const cap = mine.fence === null ? Infinity : latestEnd(mine)
      mine.deadline = Math.max(mine.deadline, Math.min(wish, cap))
      if (beat.fences && takeFences(draft, mine, beat.fences)) reserved.add(beat)
      if (mine.fence !== null && beat.permits !== undefined)
        mine.permits = Math.min(mine.permits, beat.permits)
    }
    for (const beat of beats) promote(draft, beat.resource)
    return beats.map((beat): BeatReply => {
      const mine = find(draft, beat.resource, beat.id)
      if (!mine) return { status: 'gone' }
      if (mine.fence === null) return waiting(draft, mine)
      const isWanted = isWaitedFor(draft, beat.resource)
      const held = { status: 'held', fence: mine.fence, leaseMs: mine.deadline - now, isWanted } as const
      if (beat.fences && !reserved.has(beat)) return { ...held, newest: newestOf(draft, beat.resource) }
      if (beat.block === undefined) return held
      return {
        ...held,
        block: give(draft, { kind: 'block', name: beat.resource, id: beat.id, size: beat.block, floor: 0 }),
      }
    })
  })
}

/** false: they are refused, or the claim waits. */
function takeFences(
  draft: Draft,
  mine: ModelClaim,
  { first, count }: { first: number; count: number },
): boolean {
  const { resource, id } = mine.request
  if (mine.fence === null) return false
  if (mine.fence === first) return true
  if (first <= (mine.permits === EXCLUSIVE ? mine.fence : newestOf(draft, resource))) return false
  mine.fence = give(draft, { kind: 'named', name: resource, id, size: count, floor: 0 })
  return true
}

export function release(model: Model, now: number, resource: string, id: string): Outcome<boolean> {
  return step(model, now, (draft) => {
    dropLapsed(draft, resource)
    const mine = find(draft, resource, id)
    if (mine) remove(draft, mine)
    promote(draft, resource)
    return mine !== undefined
  })
}

export function evict(
  model: Model,
  now: number,
  resource: string,
  fence: number | null,
): Outcome<ClaimView[]> {
  return step(model, now, (draft) => {
    tidy(draft, resource)
    const revoked = holdsOf(draft, resource).filter((hold) => fence === null || hold.fence === fence)
    const views = revoked.map((hold) => viewOf(hold, now))
    for (const hold of revoked) revoke(draft, hold)
    promote(draft, resource)
    return views
  })
}

export function cancel(model: Model, now: number, resource: string, id: string): Outcome<ClaimView[]> {
  return step(model, now, (draft) => {
    tidy(draft, resource)
    const waiter = find(draft, resource, id)
    if (waiter?.fence !== null) return []
    const view = viewOf(waiter, now)
    revoke(draft, waiter)
    promote(draft, resource)
    return [view]
  })
}

export function resize(
  model: Model,
  now: number,
  resource: string,
  declared: number,
  capacity: number,
): Outcome<void> {
  return step(model, now, (draft) => {
    tidy(draft, resource)
    draft.pins = draft.pins.filter((pin) => pin.resource !== resource)
    // Back to what everybody declares: there is nothing left to remember.
    const isPlain =
      declared === capacity && lineOf(draft, resource).every((each) => each.capacity === capacity)
    if (!isPlain) draft.pins.push({ resource, declared, capacity })
    for (const each of lineOf(draft, resource))
      if (each.fence === null && each.permits > capacity) revoke(draft, each)
    promote(draft, resource)
  })
}

/**
 * The line as it is, also an empty one whose capacity is pinned; looking changes nothing, so the
 * lapsed are passed over and nobody is promoted.
 */
export function view(model: Model, now: number, resource: string): LineView | null {
  const alive = model.claims.filter((each) => each.request.resource === resource && each.deadline > now)
  const pin = model.pins.find((each) => each.resource === resource)
  const capacity = pin?.capacity ?? alive[0]?.capacity
  if (capacity === undefined) return null
  return {
    resource,
    capacity,
    ...(pin ? { declared: pin.declared } : {}),
    claims: alive.map((each) => viewOf(each, now)),
  }
}

export function read(
  model: Model,
  now: number,
  client: string,
  key: string,
  watch: boolean,
): Outcome<StateValue | null> {
  return step(model, now, (draft) => {
    const isWatching = draft.watches.some((each) => each.key === key && each.client === client)
    if (watch && !isWatching) draft.watches.push({ key, client })
    return stateOf(draft, key)
  })
}

/** In the order of their keys. */
export function states(model: Model, now: number, prefix: string): Outcome<StateView[]> {
  return step(model, now, (draft) =>
    draft.values
      .filter(({ key, deadline }) => key.startsWith(prefix) && deadline > now)
      .map(({ key, value, version }) => ({ key, value, version }))
      .sort((a, b) => (a.key < b.key ? -1 : 1)),
  )
}

export function write(model: Model, now: number, change: StateChange): Outcome<StateOutcome> {
  return step(model, now, (draft) => {
    const { key, value, retentionMs } = change
    const before = stateOf(draft, key)
    if ((before?.version ?? null) !== change.expect) return { written: false, current: before }
    if (before === null && change.value === null) return { written: true, current: null }
    draft.values = draft.values.filter((each) => each.key !== key)
    if (value !== null) {
      const version = give(draft, { kind: 'version', name: key, id: null, size: 1, floor: 0 })
      draft.values.push({ key, value, version, deadline: now + (retentionMs ?? Infinity) })
    }
    for (const { client } of draft.watches.filter((each) => each.key === key))
      draft.pushes.push({ client, news: { type: 'state', key } })
    draft.watches = draft.watches.filter((each) => each.key !== key)
    return { written: true, current: stateOf(draft, key) }
  })
}

function adopt(
  draft: Draft,
  client: string,
  request: ClaimRequest,
  adopts: { id: string; fence: number },
): ClaimReply {
  const old = find(draft, request.resource, adopts.id)
  if (!old || old.fence !== adopts.fence || request.permits > old.permits)
    return { status: 'refused', reason: 'gone' }
  const heir = newClaim(draft, client, request, old.permits, old.capacity)
  draft.claims = draft.claims.map((each) => (each === old ? heir : each))
  tellLost(draft, old)
  grantAtOnce(draft, heir)
  return answer(draft, heir)
}
