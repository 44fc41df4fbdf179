import type { BeatReply, Granted, Waiting } from '../../contract/store.js'
import { trustedUntil } from '../../contract/validity.js'
import type { Member } from './member.js'

/**
 * - `none`: not asked, or given back
 * - `asked`: sent, not answered
 * - `waiting`: in the member's line
 * - `granted`: the member has granted the claim
 * - `busy`: refused
 * - `gone`: the member does not have it any more
 * - `failed`: no answer came; it may have it
 */
export type VoteState = 'none' | 'asked' | 'waiting' | 'granted' | 'busy' | 'gone' | 'failed'

/** What one member has answered to a claim. All times are `env.now()`. */
export class Vote {
  state: VoteState = 'none'
  /** The id of the claim on this member: new for each time that it is asked for. */
  nonce = ''
  /** The fence by which the member knows the grant. */
  fence = 0
  /** Until when the member surely covers the hold, or keeps the place in line. */
  until = 0
  /** The newest fence of the resource that the member has told of, when it refused another. */
  newest = 0
  isWanted: boolean | undefined
  /** The last answer that said "waiting". */
  place: Waiting | null = null
  #askedAt = 0
  #inLineAt = 0

  constructor(readonly member: Member) {}

  /** Whether the member may have something of this claim that has to be given back. */
  get isOwed(): boolean {
    return (
      this.state === 'asked' ||
      this.state === 'waiting' ||
      this.state === 'granted' ||
      this.state === 'failed'
    )
  }

  asked(nonce: string, now: number): void {
    this.state = 'asked'
    this.nonce = nonce
    this.fence = 0
    this.newest = 0
    this.until = 0
    this.place = null
    this.isWanted = undefined
    this.#askedAt = now
    this.#inLineAt = now
  }

  granted({ fence, leaseMs, isWanted, waitedMs = 0 }: Granted, sentAt: number): void {
    this.state = 'granted'
    this.fence = fence
    this.isWanted = isWanted
    this.#cover(trustedUntil(sentAt + waitedMs, leaseMs))
  }

  waiting(reply: Waiting, sentAt: number): void {
    this.state = 'waiting'
    this.place = reply
    this.#inLineAt = Math.max(this.#inLineAt, sentAt)
    this.#cover(trustedUntil(sentAt, reply.presenceMs))
  }

  /** Whether a pushed grant is of this stay in line. */
  canBeGranted(fence: number): boolean {
    const isPending = this.state === 'asked' || this.state === 'waiting' || this.state === 'failed'
    return isPending && fence > (this.place?.grantsAbove ?? 0)
  }

  /** The member has promoted the claim. A promotion does not refresh the waiter's deadline. */
  promoted(fence: number, presenceMs: number, maxHoldMs: number | null): void {
    this.state = 'granted'
    this.fence = fence
    this.isWanted = undefined
    if (!this.place) this.until = trustedUntil(this.#askedAt, presenceMs)
    if (maxHoldMs !== null) this.until = Math.min(this.until, trustedUntil(this.#inLineAt, maxHoldMs))
  }

  /**
   * The answer to a beat. `raisedTo`: the fence that the beat asked for. false: the member does not
   * have the claim as it was.
   */
  beaten(reply: BeatReply, sentAt: number, raisedTo: number | null): boolean {
    if (reply.status === 'held') {
      const isNew = this.state === 'asked' || this.state === 'waiting' || this.state === 'failed'
      const isSame = isNew || reply.fence === this.fence || reply.fence === raisedTo
      if (!isSame || (this.state !== 'granted' && !isNew)) return false
      this.state = 'granted'
      this.fence = reply.fence
      this.newest = Math.max(this.newest, reply.newest ?? 0)
      this.isWanted = reply.isWanted
      this.#cover(trustedUntil(sentAt, reply.leaseMs))
      return true
    }
    if (reply.status === 'gone') return false
    // An answer that the push of the grant has overtaken.
    if (this.state === 'granted') return reply.grantsAbove < this.fence
    this.waiting(reply, sentAt)
    return true
  }

  /** A renewal never shortens. */
  #cover(until: number): void {
    this.until = Math.max(this.until, until)
  }
}
