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
  /** The fences that beats have asked for, and no answer has shown yet. */
  #raising: number[] = []
  #askedAt = 0
  /** How long a place in line was asked for. */
  #presenceMs = 0
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

  asked(nonce: string, presenceMs: number, now: number): void {
    this.state = 'asked'
    this.nonce = nonce
    this.fence = 0
    this.#raising = []
    this.newest = 0
    this.until = 0
    this.place = null
    this.isWanted = undefined
    this.#askedAt = now
    this.#presenceMs = presenceMs
    this.#inLineAt = now
  }

  granted({ fence, leaseMs, isWanted, waitedMs = 0 }: Granted, sentAt: number): void {
    this.state = 'granted'
    this.#take(fence)
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
  promoted(fence: number, maxHoldMs: number | null): void {
    this.state = 'granted'
    this.#take(fence)
    this.isWanted = undefined
    if (!this.place) this.until = trustedUntil(this.#askedAt, this.#presenceMs)
    if (maxHoldMs !== null) this.until = Math.min(this.until, trustedUntil(this.#inLineAt, maxHoldMs))
  }

  /** A beat is sent that asks for these fences. */
  raising(first: number): void {
    this.#raising.push(first)
  }

  /** The answer to a beat. false: the member does not have the claim as it was. */
  beaten(reply: BeatReply, sentAt: number): boolean {
    if (reply.status === 'gone') return false
    const isPending = this.state !== 'granted'
    if (reply.status === 'waiting') {
      // An answer that the push of the grant has overtaken.
      if (!isPending) return reply.grantsAbove < this.fence
      this.waiting(reply, sentAt)
      return true
    }
    // A higher fence that no beat has asked for is that of another grant.
    if (!isPending && reply.fence > this.fence && !this.#raising.includes(reply.fence)) return false
    // The place in line may have been kept for longer than the hold lasts, where `maxHold` ends it.
    if (isPending) this.until = 0
    this.state = 'granted'
    this.#take(reply.fence)
    this.newest = Math.max(this.newest, reply.newest ?? 0)
    this.isWanted = reply.isWanted
    this.#cover(trustedUntil(sentAt, reply.leaseMs))
    return true
  }

  /** Answers may overtake each other: a fence is never lowered. */
  #take(fence: number): void {
    this.fence = Math.max(this.fence, fence)
    if (this.#raising.length > 0) this.#raising = this.#raising.filter((first) => first > this.fence)
  }

  /** A renewal never shortens. */
  #cover(until: number): void {
    this.until = Math.max(this.until, until)
  }
}
