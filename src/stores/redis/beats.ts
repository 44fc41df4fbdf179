import type { Beat, BeatReply } from '../../contract/store.js'
import { groupByLine, type LineBeats } from '../shared/beats.js'
import type { RedisBackend } from './backend.js'
import { explainReply, isUnreadable, outOfReach } from './failures.js'
import { pulseScript } from './lua/pulse.js'
import { type RedisNames, token } from './names.js'
import { beatReply, toUs } from './replies.js'

/**
 * Tells all lines of a pulse that we are here: in one call, or in a Cluster in one for each line,
 * all on their way at once.
 */
export async function sendBeats(
  backend: RedisBackend,
  names: RedisNames,
  beats: readonly Beat[],
): Promise<BeatReply[]> {
  const replies: BeatReply[] = []
  const groups = groupByLine(beats)
  const driver = backend.runner.driver ?? (await backend.runner.open())
  const calls = driver.isCluster ? groups.map((group) => [group]) : [groups]
  await Promise.all(
    calls.map(async (call) => {
      const text = await send(backend, names, call, beats)
      const indexes = call.flatMap((group) => group.indexes)
      text.split(',').forEach((reply, place) => {
        replies[indexes[place] ?? 0] = answerOf(reply)
      })
    }),
  )
  return replies
}

async function send(
  { runner, replicas }: RedisBackend,
  names: RedisNames,
  groups: readonly LineBeats[],
  beats: readonly Beat[],
): Promise<string> {
  const keys = groups.map(({ resource }) => names.line(resource))
  const args = groups.flatMap(({ indexes }) => [
    String(indexes.length),
    ...indexes.flatMap((index) => beatArguments(beats[index] as Beat)),
  ])
  if (!replicas) return String(await runner.run(pulseScript, keys, args))
  const { reply, acknowledged } = await runner.runDurably(pulseScript, keys, args, replicas)
  // A renewal that a fail-over could lose must not be relied upon.
  if (acknowledged < replicas.count) {
    runner.missReplicas()
    throw outOfReach(`only ${acknowledged} of ${replicas.count} replicas have the renewal`)
  }
  return String(reply)
}

function beatArguments({ id, leaseMs, presenceMs, permits, block, fences }: Beat): string[] {
  const wish = fences ? `${fences.first}/${fences.count}` : String(block ?? '-')
  return [token(id), toUs(leaseMs), toUs(presenceMs), String(permits ?? '-'), wish]
}

/**
 * A line that cannot be read, and will not be, has no claims of ours; it must not take the renewals
 * of all others with it.
 */
function answerOf(reply: string): BeatReply {
  if (!reply.startsWith('error ')) return beatReply(reply)
  const text = reply.slice('error '.length)
  if (!isUnreadable(text)) throw explainReply(text)
  return { status: 'gone' }
}
