import { HoldfastError } from '../../../src/base/errors.js'
import type { Beat, BeatReply, ClientContext, Connection, Push, Store } from '../../../src/contract/store.js'

/**
 * Clients of a ZooKeeper store speak of their own claims only, as real ones do. Generated histories let any client speak of any claim:
 * here such calls go through the client that made the claim.
 */
export function routed(store: Store): Store {
  const makers = new Map<string, Connection>()
  /** The claims of clients that have only seemingly closed. Nobody waits for their news: they look before others look at the line. */
  const orphans = new Map<string, Beat>()
  const lookAtOrphans = async (): Promise<void> => {
    for (const [key, beat] of orphans) await makers.get(key)?.pulse([beat])
  }
  return {
    name: store.name,
    capabilities: store.capabilities,
    connect(client: ClientContext): Connection {
      // Only seemingly: what a closed client has in lines must stay there, as in the model.
      let isClosed = false
      const mine = new Map<string, Beat>()
      const forget = (claim: ClaimKey): void => {
        for (const claims of [makers, orphans, mine]) claims.delete(keyOf(claim))
      }
      const push = (news: Push): void => {
        if (news.type === 'lost') forget(news)
        if (!isClosed) client.push(news)
      }
      const own = store.connect({ ...client, push })
      const of = (claim: ClaimKey): Connection => makers.get(keyOf(claim)) ?? own
      const open = <A extends unknown[], T>(call: (...args: A) => Promise<T>) => {
        return async (...args: A): Promise<T> => {
          if (isClosed) throw new HoldfastError('CLOSED', 'closed')
          return call(...args)
        }
      }
      return {
        claim: open(async (request) => {
          await lookAtOrphans()
          const { resource, id, leaseMs, presenceMs } = request
          const maker = of(request)
          makers.set(keyOf(request), maker)
          if (maker === own) mine.set(keyOf(request), { resource, id, leaseMs, presenceMs })
          const reply = await maker.claim(request)
          if (reply.status === 'refused') forget(request)
          return reply
        }),
        pulse: open(async (beats) => (beats.length === 0 ? own.pulse([]) : pulseEach(beats, of))),
        release: open(async (resource, id) => {
          const isThere = await of({ resource, id }).release(resource, id)
          forget({ resource, id })
          return isThere
        }),
        evict: open(async (resource, fence) => {
          await lookAtOrphans()
          return own.evict(resource, fence)
        }),
        cancel: open(async (resource, id) => {
          await lookAtOrphans()
          return own.cancel(resource, id)
        }),
        resize: open((resource, declared, capacity) => own.resize(resource, declared, capacity)),
        read: open((key, watch) => own.read(key, watch)),
        write: open((change) => own.write(change)),
        states: (prefix) => own.states(prefix),
        async *inspect(query) {
          if (isClosed) throw new HoldfastError('CLOSED', 'closed')
          await lookAtOrphans()
          yield* own.inspect(query)
        },
        async close() {
          isClosed = true
          for (const [key, beat] of mine) orphans.set(key, beat)
        },
      }
    },
  }
}

/** One claim at a time, in three rounds: who is held, what they give back, and what came of it. */
async function pulseEach(beats: readonly Beat[], of: (claim: ClaimKey) => Connection): Promise<BeatReply[]> {
  const pulse = async (beat: Beat): Promise<BeatReply> =>
    (await of(beat).pulse([beat]))[0] ?? { status: 'gone' }
  const held: Beat[] = []
  for (const { permits, block: _, ...beat } of beats) {
    const { status } = await pulse(beat)
    if (status === 'held' && permits !== undefined) held.push({ ...beat, permits })
  }
  for (const beat of held) await pulse(beat)
  const replies: BeatReply[] = []
  for (const { permits: _, ...beat } of beats) replies.push(await pulse(beat))
  return replies
}

interface ClaimKey {
  readonly resource: string
  readonly id: string
}

function keyOf({ resource, id }: ClaimKey): string {
  return JSON.stringify([resource, id])
}
