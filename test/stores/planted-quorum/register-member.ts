import { changedStore } from '../../../proof/planted/changed-store.js'
import { EXCLUSIVE } from '../../../src/contract/constants.js'
import { nextFence } from '../../../src/contract/fence.js'
import type { Beat, BeatReply, ClaimReply, ClaimRequest, Push, Store } from '../../../src/contract/store.js'
import type { VirtualProcess } from '../../../src/testing/virtual-env.js'

/**
 * How a member treats a fence that a client writes back, as in the protocols of
 * docs/decisions/0013-quorum.md:
 * - `ignored`: V1, nothing is written
 * - `blind`: V2, written even if the claim is not there any more
 * - `lower`: V3, written where the claim is there, even if it is lower
 * - `right`: V4
 */
export type WriteBack = 'ignored' | 'blind' | 'lower' | 'right'

interface Fenced {
  readonly request: ClaimRequest
  /** The fence by which the store below knows the grant. */
  inner: number
  fence: number
}

/** The claims and the newest fence of one resource. */
interface Register {
  newest: number
  readonly claims: Map<string, Fenced>
}

/**
 * A member that keeps the fences itself, one register for each resource, so that a wrong write can
 * lower one. The lines are those of the store below.
 */
export function registerMember(store: Store, process: VirtualProcess, writeBack: WriteBack): Store {
  const spaces = new Map<string, RegisterSpace>()
  return changedStore(store, ({ space }) => {
    const registers = spaces.get(space) ?? new RegisterSpace(process, writeBack)
    spaces.set(space, registers)
    return {
      claim(inner, request) {
        registers.asked(request)
        return registers.claimReply(request, inner.claim(request) as ClaimReply)
      },
      async pulse(inner, beats) {
        const plain = beats.map(({ block: _block, fences: _fences, ...beat }) => beat)
        const replies = await inner.pulse(plain)
        return replies.map((reply, index) => registers.beatReply(beats[index] as Beat, reply))
      },
      push: (news) => registers.push(news),
    }
  })
}

class RegisterSpace {
  readonly #registers = new Map<string, Register>()
  readonly #process: VirtualProcess
  readonly #writeBack: WriteBack

  constructor(process: VirtualProcess, writeBack: WriteBack) {
    this.#process = process
    this.#writeBack = writeBack
  }

  asked(request: ClaimRequest): void {
    const { claims } = this.#of(request.resource)
    if (!claims.has(request.id)) claims.set(request.id, { request, inner: 0, fence: 0 })
  }

  claimReply({ resource, id }: ClaimRequest, reply: ClaimReply): ClaimReply {
    if (reply.status === 'granted') return { ...reply, fence: this.#fence(resource, id, reply.fence, 0) }
    if (reply.status === 'waiting') return { ...reply, grantsAbove: this.#of(resource).newest }
    return reply
  }

  push(news: Push): Push {
    if (news.type !== 'granted') return news
    const { resource, id, fence, heirs = [] } = news
    return { ...news, fence: this.#fence(resource, id, fence, heirs.length) }
  }

  beatReply(beat: Beat, reply: BeatReply): BeatReply {
    const { resource, id, block, fences } = beat
    const register = this.#of(resource)
    if (reply.status === 'waiting') return { ...reply, grantsAbove: register.newest }
    if (reply.status === 'gone') {
      if (this.#writeBack !== 'blind' || !fences) return reply
      register.newest = fences.first + fences.count - 1
      return { status: 'held', fence: fences.first, leaseMs: beat.leaseMs }
    }
    const fence = this.#fence(resource, id, reply.fence, 0)
    if (block !== undefined) return { ...reply, fence, block: this.#next(register, 0, block) }
    if (!fences) return { ...reply, fence }
    const claim = register.claims.get(id) as Fenced
    const isWritten = this.#write(register, claim, fences)
    return { ...reply, fence: claim.fence, ...(isWritten ? {} : { newest: register.newest }) }
  }

  #write(register: Register, claim: Fenced, { first, count }: { first: number; count: number }): boolean {
    const last = first + count - 1
    if (this.#writeBack === 'ignored') {
      claim.fence = first
      return true
    }
    if (this.#writeBack !== 'right') {
      claim.fence = first
      register.newest = last
      return true
    }
    const isExclusive = claim.request.permits === EXCLUSIVE
    const isNew = first > register.newest || first === claim.fence
    if (!isNew && !(isExclusive && first > claim.fence)) return false
    claim.fence = first
    register.newest = Math.max(register.newest, last)
    return true
  }

  /** The fence of a grant that the store below knows by another one. */
  #fence(resource: string, id: string, inner: number, heirs: number): number {
    const register = this.#of(resource)
    const claim = register.claims.get(id)
    if (!claim) throw new Error(`A grant of ${resource} for the unknown claim ${id}`)
    if (claim.inner === inner) return claim.fence
    const { floor, block } = claim.request
    claim.inner = inner
    claim.fence = this.#next(register, floor, block + heirs)
    return claim.fence
  }

  #next(register: Register, floor: number, block: number): number {
    const first = nextFence({ last: register.newest, floor, wallMs: this.#process.wallMs(), block })
    register.newest = first + block - 1
    return first
  }

  #of(resource: string): Register {
    const register = this.#registers.get(resource) ?? { newest: 0, claims: new Map() }
    this.#registers.set(resource, register)
    return register
  }
}
