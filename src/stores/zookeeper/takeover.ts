import type { ClaimReply, ClaimRequest } from '../../contract/store.js'
import type { LineClaim } from './claim.js'
import { fenceOf } from './names.js'
import type { ZooKeeperSpace } from './space.js'

/** After so many conflicts with other claims, a steal joins the line and continues from there. */
const MOST_STEALS = 10

/**
 * Removes every hold and takes the place of the last one, in one step; waiters stay behind it.
 * false: there is no hold, or the holds keep changing, so the claim has to join the line.
 */
export async function steal(
  space: ZooKeeperSpace,
  claim: LineClaim,
  request: ClaimRequest,
): Promise<boolean | ClaimReply> {
  const { resource, permits, capacity } = request
  for (let count = 1; count <= MOST_STEALS; count++) {
    const line = await space.listInSync(resource)
    if (!line.agrees(request))
      return { status: 'refused', reason: 'capacity', capacity: line.capacity ?? capacity }
    const last = line.holds.at(-1)
    if (!last) return false
    const place = { permits, capacity, sequence: last.sequence, fence: null }
    if (await claim.attempt.replace(line.holds, place)) return true
  }
  return false
}

/**
 * The same for a claim that has joined the line behind others. Each conflict brings it nearer to
 * the front.
 */
export async function overtake(
  space: ZooKeeperSpace,
  claim: LineClaim,
  request: ClaimRequest,
): Promise<void> {
  const { resource, permits, capacity } = request
  while (claim.state === 'waiting') {
    const { holds } = await space.listInSync(resource)
    const last = holds.at(-1)
    if (!last) return
    await claim.attempt.replace(holds, { permits, capacity, sequence: last.sequence, fence: null })
    await claim.position.update()
  }
}

/** Takes the very place of a hold, if it is still held. */
export async function adopt(
  space: ZooKeeperSpace,
  claim: LineClaim,
  { resource, permits }: ClaimRequest,
  adopts: { id: string; fence: number },
): Promise<ClaimReply | true> {
  const { holds } = await space.listInSync(resource)
  for (const old of holds.filter(({ id }) => id === adopts.id)) {
    const { stat } = await space.session.zk.exists(`${space.lineOf(resource)}/${old.name}`)
    const isHeld = stat && (old.fence ?? fenceOf(stat.czxid)) === adopts.fence
    // A hold that shrank after it was exported has fewer permits now: the rest may belong to
    // others.
    const isFitting = isHeld && permits <= old.permits
    if (isFitting && (await claim.attempt.replace([old], { ...old, fence: null }))) return true
  }
  return { status: 'refused', reason: 'gone' }
}
