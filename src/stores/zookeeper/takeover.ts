import type { ClaimReply, ClaimRequest } from '../../contract/store.js'
import type { LineClaim } from './claim.js'
import { fenceOf } from './names.js'
import type { ZooKeeperSpace } from './space.js'

/**
 * Removes every other hold and takes the place of the last one, in one step; waiters stay behind
 * it. The claim has joined the line before: so a claim that joins after the line was listed waits
 * behind it, and is not granted beside a hold that is about to be removed.
 */
export async function overtake(
  space: ZooKeeperSpace,
  claim: LineClaim,
  { resource, permits, capacity }: ClaimRequest,
): Promise<void> {
  while (claim.state === 'waiting') {
    const line = await space.list(resource)
    const holds = line.holds.filter(({ name }) => name !== claim.attempt.node?.claim.name)
    const last = holds.at(-1)
    if (last) {
      const place = { permits, capacity, sequence: last.sequence, fence: null }
      // A resize meanwhile may have let waiters in.
      await claim.attempt.replace(holds, place, line.version ?? undefined)
    }
    await claim.position.update(last ? undefined : line)
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
