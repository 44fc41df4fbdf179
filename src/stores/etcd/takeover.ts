import { HoldfastError } from '../../base/errors.js'
import type { ClaimRequest, Refused } from '../../contract/store.js'
import type { KeyCompare, Operation } from '../../drivers/etcd/index.js'
import type { BatchAnswer } from './batch.js'
import type { EtcdClaim } from './claim.js'
import { askAgain, isUncertain } from './failures.js'
import type { LineRows } from './line-rows.js'
import { type EtcdRow, fenceOf } from './rows.js'
import type { EtcdSpace } from './space.js'

/** How often it is tried again, because others change the line at the same time. */
const MOST_CONFLICTS = 20
/** Below the servers' `--max-txn-ops`, as each hold is compared and removed. */
const MOST_STOLEN = 100

type Refusal = Omit<Refused, 'status'>

/**
 * Joins the line if the claim is granted at once; otherwise leaves no trace, not even for a moment.
 */
export async function tryJoin(space: EtcdSpace, claim: EtcdClaim): Promise<Refusal | null> {
  const { names } = space
  const { resource } = claim.request
  const all = { key: names.claims(resource), end: names.lineEnd(resource) }
  // Nobody is in the line; later, when it was read: nobody has come since.
  let isAsBefore: KeyCompare = { ...all, target: 'create', is: '=', value: 0 }
  for (let count = 1; count <= MOST_CONFLICTS; count++) {
    const { session } = space
    const lease = await session.ready()
    claim.checkWanted()
    const put = claim.prepare(lease, 0)
    const listing = space.listing(resource)
    const answer = await write(space, claim, {
      compare: [session.guard, claim.isNew, isAsBefore],
      success: [put, listing],
      failure: [listing],
    })
    const keys = answer.results.at(-1)?.keys ?? []
    if (answer.succeeded) {
      claim.onKey(answer.revision, answer.revision)
      claim.line.load(keys, answer.revision)
      return null
    }
    claim.line.load(keys, answer.revision)
    const refusal = refusalOf(claim.line.rows, claim.request)
    if (refusal) return refusal
    await session.readGuard()
    isAsBefore = { ...all, target: 'mod', is: '<', value: answer.revision + 1 }
  }
  return { reason: 'busy' }
}

/** Why a claim that wants to be granted at once cannot be. */
function refusalOf(rows: LineRows, { permits, capacity }: ClaimRequest): Refusal | null {
  if (!rows.agrees({ permits, capacity })) return { reason: 'capacity', capacity: rows.capacity ?? capacity }
  return rows.fits(permits, capacity) ? null : { reason: 'busy' }
}

/**
 * Removes every hold and takes the place of the first one, in one step; waiters stay behind it. The
 * key of other software is not taken over, because it would be removed when that releases it: then
 * the claim joins the line at its end.
 */
export async function steal(space: EtcdSpace, claim: EtcdClaim): Promise<Refusal | null> {
  const { resource, capacity } = claim.request
  for (let count = 1; count <= MOST_CONFLICTS; count++) {
    const lease = await space.session.ready()
    claim.checkWanted()
    const { rows, revision } = await space.list(resource)
    if (!rows.agrees(claim.request)) return { reason: 'capacity', capacity: rows.capacity ?? capacity }
    const { holds } = rows
    if (holds.length > MOST_STOLEN) throw tooMany(resource, holds.length)
    const place = holds.find(({ isOwn }) => isOwn)
    const put = place ? claim.prepareOver(place, lease, claim.request) : claim.prepare(lease, 0)
    const removed = holds.filter((row) => row !== place)
    const removals = removed.map(({ key }): Operation => ({ type: 'delete', key }))
    const unchanged = [...holds.map(sameKey), ...sameHolders(space, resource, rows, revision)]
    if (!place) unchanged.push(claim.isNew)
    if (await takePlace(space, claim, { put, place, taken: holds, unchanged, removals })) return null
  }
  throw askAgain(`The holds of '${resource}' changed too often to be stolen`)
}

/** While the holds stay, nobody else has become a holder. */
function sameHolders(space: EtcdSpace, resource: string, rows: LineRows, revision: number): KeyCompare[] {
  const { names } = space
  const next = rows.claims[rows.holdCount]
  // Nobody passes the first waiter; where nobody waits, the next that comes may hold at once.
  const nobodyCame: KeyCompare = next
    ? { key: next.key, target: 'create', is: '=', value: next.createRevision }
    : {
        ...{ key: names.claims(resource), end: names.lineEnd(resource) },
        ...{ target: 'create', is: '<', value: revision + 1 },
      }
  return [{ key: names.pin(resource), target: 'mod', is: '=', value: rows.pinRevision }, nobodyCame]
}

function sameKey({ key, modRevision }: EtcdRow): KeyCompare {
  return { key, target: 'mod', is: '=', value: modRevision }
}

function tooMany(resource: string, count: number): HoldfastError {
  const text = `'${resource}' has ${count} holds, and etcd cannot take more than ${MOST_STOLEN} in one step; break them with breakHold, one by one`
  return new HoldfastError('UNSUPPORTED', text, { store: 'etcd', resource })
}

/** Takes the very place of a hold, if it is still held. */
export async function adopt(
  space: EtcdSpace,
  claim: EtcdClaim,
  adopts: { id: string; fence: number },
): Promise<Refusal | null> {
  const { resource, permits } = claim.request
  for (let count = 1; count <= MOST_CONFLICTS; count++) {
    const lease = await space.session.ready()
    claim.checkWanted()
    const { rows } = await space.list(resource)
    const place = rows.holds.find((row) => row.value.id === adopts.id && fenceOf(row) === adopts.fence)
    // A hold that shrank after it was exported has fewer permits now: the rest may be held.
    if (!place || permits > place.value.permits) return { reason: 'gone' }
    const put = claim.prepareOver(place, lease, place.value)
    const taking = { put, place, taken: [place], unchanged: [sameKey(place)], removals: [] }
    if (await takePlace(space, claim, taking)) return null
  }
  throw askAgain(`The hold of '${resource}' changed too often to be adopted`)
}

interface Taking {
  readonly put: Operation
  /** Whose key it takes; undefined: a new one, at the end of the line. */
  readonly place: EtcdRow | undefined
  /** The holds that end. */
  readonly taken: readonly EtcdRow[]
  readonly unchanged: readonly KeyCompare[]
  readonly removals: readonly Operation[]
}

/** false: something has changed. */
async function takePlace(space: EtcdSpace, claim: EtcdClaim, taking: Taking): Promise<boolean> {
  const { session, names } = space
  const { resource } = claim.request
  const { put, place, taken, unchanged, removals } = taking
  // Claims that wait already, and are granted after this one, need later fences than their own.
  const jump = { type: 'put', key: names.jump(resource), value: '' } as const
  const answer = await write(space, claim, {
    compare: [session.guard, ...unchanged],
    success: [...removals, put, ...(taken.length > 0 ? [jump] : []), space.listing(resource)],
  })
  if (!answer.succeeded) {
    await session.readGuard()
    return false
  }
  for (const { key } of taken) claim.line.own(key)?.lose()
  claim.isAccepted = true
  claim.onKey(place?.createRevision ?? answer.revision, answer.revision)
  claim.line.load(answer.results.at(-1)?.keys ?? [], answer.revision)
  return true
}

async function write(
  space: EtcdSpace,
  claim: EtcdClaim,
  transaction: Parameters<EtcdSpace['batch']['run']>[0],
): Promise<BatchAnswer> {
  try {
    return await space.batch.run(transaction)
  } catch (error) {
    if (isUncertain(error)) claim.isUncertain = true
    throw error
  }
}
