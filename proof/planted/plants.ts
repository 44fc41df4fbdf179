import { EXCLUSIVE } from '../../src/contract/constants.js'
import type {
  BeatReply,
  ClaimReply,
  ClaimRequest,
  Connection,
  Push,
  Store,
} from '../../src/contract/store.js'
import { now } from '../../src/testing/conformance/checks.js'
import { changedStore, pulseEach } from './changed-store.js'

const HOUR_US = 3_600_000_000

/** A release ends whatever hold there is, as DEL does without a look at the value. */
export function releaseOfAnyHold(store: Store): Store {
  return changedStore(store, {
    async release(inner, resource, id) {
      if (await inner.release(resource, id)) return true
      return (await inner.evict(resource, null)).length > 0
    },
    // The holder is not told: such a store does not know that there is one.
    push: (news) => (news.type === 'lost' ? null : news),
  })
}

/** Fences are the clock, which is set back by an hour after the first one. */
export function fencesFromClock(store: Store): Store {
  const startUs = now() * 1000 + 2 * HOUR_US
  let given = 0
  return withFences(store, () => Math.round(startUs + now() * 1000 - (given++ > 0 ? HOUR_US : 0)))
}

/** Fences are counted in the line, and the line is removed with its last claim. */
export function fencesLostWithLine(store: Store): Store {
  const counters = new Map<string, number>()
  const lines = new Map<string, Set<string>>()
  const counted = withFences(store, (resource) => {
    const fence = (counters.get(resource) ?? 0) + 1
    counters.set(resource, fence)
    return fence
  })
  return changedStore(counted, {
    async claim(inner, request) {
      const line = lines.get(request.resource) ?? new Set()
      lines.set(request.resource, line.add(request.id))
      return inner.claim(request)
    },
    async release(inner, resource, id) {
      const isThere = await inner.release(resource, id)
      const line = lines.get(resource)
      line?.delete(id)
      if (line?.size === 0) counters.delete(resource)
      return isThere
    },
  })
}

/** The store with fences of other making. Each claim has one. */
function withFences(store: Store, next: (resource: string) => number): Store {
  const fences = new Map<string, number>()
  const fenceOf = (resource: string, id: string): number => {
    const fence = fences.get(id) ?? next(resource)
    fences.set(id, fence)
    return fence
  }
  const fenced = <R extends ClaimReply | BeatReply>(resource: string, id: string, reply: R): R => {
    if (reply.status === 'waiting') return { ...reply, grantsAbove: 0 }
    const isHeld = reply.status === 'granted' || reply.status === 'held'
    return isHeld ? { ...reply, fence: fenceOf(resource, id) } : reply
  }
  return changedStore(store, {
    claim: async (inner, request) => fenced(request.resource, request.id, await inner.claim(request)),
    pulse: (inner, beats) =>
      pulseEach(inner, beats, ({ resource, id }, reply) => fenced(resource, id, reply)),
    push: (news) => (news.type === 'granted' ? { ...news, fence: fenceOf(news.resource, news.id) } : news),
  })
}

/** What a store that makes holds anew remembers of one. */
interface Remembered {
  readonly request: ClaimRequest
  readonly fence: number
}

/** A renewal of a hold that is gone makes it anew, with its old fence. */
export function recreatingRenewals(store: Store): Store {
  const known = new Map<string, Remembered>()
  return changedStore(store, {
    async claim(inner, request) {
      const reply = await inner.claim(request)
      if (reply.status === 'granted') known.set(request.id, { request, fence: reply.fence })
      return reply
    },
    pulse: (inner, beats) =>
      pulseEach(inner, beats, async ({ id }, reply) => {
        const hold = known.get(id)
        if (!hold || reply.status === 'waiting') return reply
        if (reply.status === 'held') return { ...reply, fence: hold.fence }
        const again = await inner.claim({ ...hold.request, mode: 'try' })
        if (again.status !== 'granted') return reply
        return { status: 'held', fence: hold.fence, leaseMs: again.leaseMs }
      }),
  })
}

/** A waiter that hears of its grant believes it, however old the news is. */
export function noCheckAfterWaiting(store: Store): Store {
  const granted = new Map<string, number>()
  return changedStore(store, {
    pulse: (inner, beats) =>
      pulseEach(inner, beats, ({ id, leaseMs }, reply) => {
        const fence = granted.get(id)
        if (fence === undefined || reply.status !== 'gone') return reply
        return { status: 'held', fence, leaseMs }
      }),
    push(news) {
      if (news.type === 'granted') granted.set(news.id, news.fence)
      return news
    },
  })
}

/** The lease counts from the reply, and not from before the request. */
export function countedAfterReply(store: Store): Store {
  const longer = <R extends ClaimReply | BeatReply>(reply: R, ms: number): R =>
    'leaseMs' in reply ? { ...reply, leaseMs: reply.leaseMs + ms } : reply
  return changedStore(store, {
    async claim(inner, request) {
      const sentAt = now()
      const reply = await inner.claim(request)
      return longer(reply, now() - sentAt)
    },
    async pulse(inner, beats) {
      const sentAt = now()
      const replies = await inner.pulse(beats)
      return replies.map((reply) => longer(reply, now() - sentAt))
    },
  })
}

/** A waiter's place is lost, and the waiter is told that it still waits. */
export function lostWaiters(store: Store): Store {
  const lost = new Set<string>()
  return changedStore(store, {
    async claim(inner, request) {
      const reply = await inner.claim(request)
      if (reply.status !== 'waiting') return reply
      lost.add(request.id)
      await inner.release(request.resource, request.id)
      return reply
    },
    pulse: (inner, beats) =>
      pulseEach(inner, beats, ({ id, presenceMs }, reply) =>
        lost.has(id)
          ? { status: 'waiting', presenceMs, isNext: true, freeInMs: null, grantsAbove: 0 }
          : reply,
      ),
    release: async (inner, resource, id) => lost.delete(id) || inner.release(resource, id),
    push: (news) => ('id' in news && lost.has(news.id) ? null : news),
  })
}

/** A reader that finds a writer waiting is admitted at once, past the line, which does not count it. */
export function overtakingReaders(store: Store): Store {
  const writers = new Set<string>()
  const readers = new Map<string, number>()
  let newest = 0
  const noteGrant = (id: string, fence: number): void => {
    writers.delete(id)
    newest = Math.max(newest, fence)
  }
  const claim = async (inner: Connection, request: ClaimRequest): Promise<ClaimReply> => {
    const { id, permits, leaseMs } = request
    if (permits < EXCLUSIVE && writers.size > 0) {
      readers.set(id, newest)
      return { status: 'granted', fence: newest, leaseMs }
    }
    const reply = await inner.claim(request)
    if (reply.status === 'granted') noteGrant(id, reply.fence)
    if (reply.status === 'waiting' && permits === EXCLUSIVE) writers.add(id)
    return reply
  }
  return changedStore(store, {
    claim,
    pulse: (inner, beats) =>
      pulseEach(inner, beats, ({ id, leaseMs }, reply) => {
        const fence = readers.get(id)
        if (reply.status === 'held') noteGrant(id, reply.fence)
        return fence === undefined ? reply : { status: 'held', fence, leaseMs }
      }),
    release: async (inner, resource, id) => readers.delete(id) || inner.release(resource, id),
    push(news: Push) {
      if (news.type === 'granted') noteGrant(news.id, news.fence)
      return news
    },
  })
}

/** A claim for several permits of a semaphore counts as one. */
export function uncountedPermits(store: Store): Store {
  return changedStore(store, {
    claim: (inner, request) => inner.claim({ ...request, permits: 1 }),
  })
}
