import { changedStore } from '../../../proof/planted/changed-store.js'
import type {
  BeatReply,
  ClaimReply,
  ClaimRequest,
  Connection,
  Granted,
  Held,
  Store,
} from '../../../src/contract/store.js'
import { driftMs } from '../../../src/contract/validity.js'
import type { PlantedFault } from '../../../src/testing/simulation/members/backend.js'
import type { VirtualProcess } from '../../../src/testing/virtual-env.js'
import { registerMember } from './register-member.js'

/** Longer than the shortest leases, and shorter than members may be silent. */
const LONGEST_LATE_MS = 800

/** Validity counts from the answer of the quorum, and not from the sending. */
export function countedFromAnswer(): PlantedFault {
  return {
    alterQuorum: (store, process) =>
      changedStore(store, () => ({
        async claim(inner, request) {
          const sentAt = process.now()
          return longer(await inner.claim(request), process.now() - sentAt)
        },
        async pulse(inner, beats) {
          const sentAt = process.now()
          const replies = await inner.pulse(beats)
          return replies.map((reply) => longer(reply, process.now() - sentAt))
        },
      })),
  }
}

function longer<R extends ClaimReply | BeatReply>(reply: R, ms: number): R {
  const isHeld = reply.status === 'granted' || reply.status === 'held'
  return isHeld ? { ...reply, leaseMs: (reply as Granted | Held).leaseMs + ms } : reply
}

/** A hold counts as valid for as long as one member covers it, and not a majority. */
export function coveredByOne(): PlantedFault {
  const ends = new Map<VirtualProcess, Map<string, number>>()
  const endsOf = (process: VirtualProcess): Map<string, number> => {
    const known = ends.get(process) ?? new Map<string, number>()
    ends.set(process, known)
    return known
  }
  const note = (process: VirtualProcess, resource: string, until: number): void => {
    const known = endsOf(process)
    known.set(resource, Math.max(until, known.get(resource) ?? 0))
  }
  const atMost = (process: VirtualProcess, resource: string): number =>
    (endsOf(process).get(resource) ?? 0) - process.now()
  return {
    alterMember: (store, process) =>
      changedStore(store, () => ({
        async claim(inner, request) {
          const sentAt = process.now()
          const reply = await inner.claim(request)
          if (reply.status === 'granted') note(process, request.resource, sentAt + reply.leaseMs)
          return reply
        },
        async pulse(inner, beats) {
          const sentAt = process.now()
          const replies = await inner.pulse(beats)
          for (const [index, reply] of replies.entries())
            if (reply.status === 'held') note(process, beats[index]?.resource ?? '', sentAt + reply.leaseMs)
          return replies
        },
      })),
    alterQuorum: (store, process) =>
      changedStore(store, () => ({
        async claim(inner, request) {
          const reply = await inner.claim(request)
          return longest(reply, atMost(process, request.resource))
        },
        async pulse(inner, beats) {
          const sentAt = process.now()
          const replies = await inner.pulse(beats)
          const tookMs = process.now() - sentAt
          return replies.map((reply, index) =>
            longest(reply, atMost(process, beats[index]?.resource ?? '') + tookMs),
          )
        },
      })),
  }
}

function longest<R extends ClaimReply | BeatReply>(reply: R, ms: number): R {
  if (reply.status !== 'granted' && reply.status !== 'held') return reply
  const { leaseMs } = reply as Granted | Held
  return { ...reply, leaseMs: Math.max(leaseMs, ms - driftMs(ms)) }
}

/**
 * No fault: the first renewal of holds with a short lease comes to the members when the lease
 * is over.
 */
export function lateRenewals(): PlantedFault {
  const pause = (process: VirtualProcess, ms: number): Promise<void> =>
    new Promise((resolve) => {
      process.timer(ms, resolve, { keepAlive: false })
    })
  return {
    alterMember: (store, process) =>
      changedStore(store, () => {
        const renewed = new Set<string>()
        return {
          async pulse(inner, beats) {
            const first = beats.filter(({ id, fences }) => !fences && !renewed.has(id))
            for (const { id } of first) renewed.add(id)
            const leaseMs = Math.min(...first.map((beat) => beat.leaseMs))
            if (leaseMs < LONGEST_LATE_MS) await pause(process, leaseMs)
            return inner.pulse(beats)
          },
        }
      }),
  }
}

/** What a member that makes claims anew remembers of one. */
interface Remembered {
  readonly request: ClaimRequest
  /** The fence that its client knows; 0: it waits. */
  fence: number
  /** The fence by which the store below knows it. */
  inner: number
}

/** A member that claims again what has lapsed, when it is asked to renew it. */
export function recreating(): PlantedFault {
  return {
    ...lateRenewals(),
    alter: (store) => {
      const known = new Map<string, Remembered>()
      const granted = (id: string, fence: number): void => {
        const claim = known.get(id)
        if (claim && claim.fence === 0) Object.assign(claim, { fence, inner: fence })
      }
      return changedStore(store, () => ({
        claim(inner, request) {
          const reply = inner.claim(request) as ClaimReply
          if (reply.status !== 'refused' && !known.has(request.id))
            known.set(request.id, { request, fence: 0, inner: 0 })
          if (reply.status === 'granted') granted(request.id, reply.fence)
          return reply
        },
        async pulse(inner, beats) {
          const replies = await inner.pulse(beats)
          return Promise.all(
            replies.map((reply, index) => renewed(inner, known.get(beats[index]?.id ?? ''), reply)),
          )
        },
        release(inner, resource, id) {
          known.delete(id)
          return inner.release(resource, id)
        },
        push(news) {
          if (news.type === 'granted') granted(news.id, news.fence)
          return news
        },
      }))
    },
  }
}

async function renewed(
  inner: Connection,
  claim: Remembered | undefined,
  reply: BeatReply,
): Promise<BeatReply> {
  if (!claim || claim.fence === 0) return reply
  if (reply.status === 'held') return reply.fence === claim.inner ? { ...reply, fence: claim.fence } : reply
  const again = await inner.claim({ ...claim.request, mode: 'try' })
  if (again.status !== 'granted') return reply
  claim.inner = again.fence
  return { status: 'held', fence: claim.fence, leaseMs: again.leaseMs }
}

/** Restarts that lose the locks, and that no client notices: the member votes at once. */
export function votingAtOnce(): PlantedFault {
  return { hidesRestarts: true }
}

/** Members whose fences are kept in registers, by the rules of V1 to V4. */
export function writingBack(rule: Parameters<typeof registerMember>[2]): PlantedFault {
  return { alter: (store: Store, process: VirtualProcess) => registerMember(store, process, rule) }
}
