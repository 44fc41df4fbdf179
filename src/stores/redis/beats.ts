import type { Beat, BeatReply } from '../../contract/store.js'
import type { RedisBackend as RedisUser } from './backend.js'
import { explainReply, outOfReach } from './failures.js'
import { pulseScript } from './lua/pulse.js'
import { type RedisNames as Names, token } from './names.js'
import { beatReply, toUs } from './replies.js'

/** The beats of one line, by their places in the pulse. */
interface Group {
  readonly key: string
  readonly indexes: number[]
}

/** Tells all lines of a pulse that we are here: in one call, or in a Cluster in one for each line, all on their way at once. */
export async function sendBeats(user: RedisUser, names: Names, beats: readonly Beat[]): Promise<BeatReply[]> {
  const replies: BeatReply[] = []
  const groups = byLine(names, beats)
  const driver = user.runner.driver ?? (await user.runner.open())
  const calls = driver.isCluster ? groups.map((group) => [group]) : [groups]
  await Promise.all(
    calls.map(async (call) => {
      const text = await send(user, call, beats)
      const indexes = call.flatMap((group) => group.indexes)
      text.split(',').forEach((reply, place) => {
        replies[indexes[place] ?? 0] = answerOf(reply)
      })
    }),
  )
  return replies
}

function byLine(names: Names, beats: readonly Beat[]): Group[] {
  const groups = new Map<string, Group>()
  beats.forEach(({ resource }, index) => {
    const known = groups.get(resource)
    if (known) known.indexes.push(index)
    else groups.set(resource, { key: names.line(resource), indexes: [index] })
  })
  return [...groups.values()]
}

async function send({ runner, replicas }: RedisUser, groups: readonly Group[], beats: readonly Beat[]) {
  const keys = groups.map(({ key }) => key)
  const args = groups.flatMap(({ indexes }) => [
    String(indexes.length),
    ...indexes.flatMap((index) => beatArguments(beats[index] as Beat)),
  ])
  if (!replicas) return String(await runner.run(pulseScript, keys, args))
  const { reply, acknowledged } = await runner.runDurably(pulseScript, keys, args, replicas)
  // A renewal that a fail-over could lose must not be relied upon.
  if (acknowledged < replicas.count) {
    runner.suspect()
    throw outOfReach(`only ${acknowledged} of ${replicas.count} replicas have the renewal`)
  }
  return String(reply)
}

function beatArguments({ id, leaseMs, presenceMs, permits, block }: Beat): string[] {
  return [token(id), toUs(leaseMs), toUs(presenceMs), String(permits ?? '-'), String(block ?? '-')]
}

/** A line that cannot be read, and will not be, has no claims of ours; it must not take the renewals of all others with it. */
function answerOf(reply: string): BeatReply {
  if (!reply.startsWith('error ')) return beatReply(reply)
  const failure = explainReply(reply.slice('error '.length))
  if (failure.retryable) throw failure
  return { status: 'gone' }
}
