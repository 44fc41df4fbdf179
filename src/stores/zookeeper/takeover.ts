import type { ClaimReply, ClaimRequest } from '../../contract/store.js'
import { fenceOf } from './names.js'
import type { Places } from './places.js'
import type { Stay } from './stay.js'

/** Others may come and go while we look; after so many surprises it joins the line, and goes on from there. */
const MOST_ATTEMPTS = 10

/**
 * Removes every hold and takes the place of the last of them, in one step; those who wait stay behind it. false: nobody holds, or
 * the holds change all the time, so it has to join the line.
 */
export async function steal(
  places: Places,
  stay: Stay,
  request: ClaimRequest,
): Promise<boolean | ClaimReply> {
  const { resource, permits, capacity } = request
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    const line = await places.listInSync(resource)
    if (!line.agrees(request))
      return { status: 'refused', reason: 'capacity', capacity: line.capacity ?? capacity }
    const last = line.holds.at(-1)
    if (!last) return false
    if (await stay.replace(line.holds, { permits, capacity, sequence: last.sequence, fence: null }))
      return true
  }
  return false
}

/** The same for a claim that has joined the line, where others came before it. Each surprise brings it nearer to the front. */
export async function overtake(places: Places, stay: Stay, request: ClaimRequest): Promise<void> {
  const { resource, permits, capacity } = request
  while (stay.state === 'waiting') {
    const { holds } = await places.listInSync(resource)
    const last = holds.at(-1)
    if (!last) return
    await stay.replace(holds, { permits, capacity, sequence: last.sequence, fence: null })
    await stay.settle()
  }
}

/** Takes the very place of a hold, if it is still held. */
export async function adopt(
  places: Places,
  stay: Stay,
  { resource, permits }: ClaimRequest,
  adopts: { id: string; fence: number },
): Promise<ClaimReply | true> {
  const { holds } = await places.listInSync(resource)
  for (const old of holds.filter(({ id }) => id === adopts.id)) {
    const { stat } = await places.session.zk.exists(`${places.lineOf(resource)}/${old.name}`)
    const isHeld = stat && (old.fence ?? fenceOf(stat.czxid)) === adopts.fence
    // The place is taken over as it is. What was passed on before it shrank tells of permits that are others' by now.
    if (isHeld && permits <= old.permits && (await stay.replace([old], { ...old, fence: null }))) return true
  }
  return { status: 'refused', reason: 'gone' }
}
