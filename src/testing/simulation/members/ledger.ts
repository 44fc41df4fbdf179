import type { Beat, BeatReply, ClaimReply, ClaimRequest } from '../../../contract/store.js'
import { engineId } from '../../../stores/quorum/inspection.js'
import type { Kept } from './server.js'

/** What happened at the members, to judge whether enough did. */
export interface MemberTally {
  /** Attempts that a majority of the members granted, but not all. */
  majorities: number
  /** Fences that a member raised to that of another. */
  raises: number
  /** Fences that a member would not raise. */
  refusedRaises: number
  /** How often the waiters of a lock stood in the line of another member than before. */
  usherChanges: number
  restarts: number
  /** Restarts after which at least the locks were gone. */
  forgetfulRestarts: number
}

/** Counts what the members of one world answer. */
export class MemberLedger {
  readonly #tally: MemberTally = {
    majorities: 0,
    raises: 0,
    refusedRaises: 0,
    usherChanges: 0,
    restarts: 0,
    forgetfulRestarts: 0,
  }
  readonly #majority: number
  readonly #members: number
  /** The members that have granted an attempt. */
  readonly #granted = new Map<string, Set<string>>()
  /** The member in whose line a claim for that lock has waited last. */
  readonly #ushers = new Map<string, string>()

  constructor(members: number) {
    this.#members = members
    this.#majority = Math.floor(members / 2) + 1
  }

  claimed(member: string, { resource, id, mode }: ClaimRequest, { status }: ClaimReply): void {
    // A quorum sends one attempt under several ids, which begin alike.
    const attempt = engineId(id)
    if (status === 'granted')
      this.#granted.set(attempt, (this.#granted.get(attempt) ?? new Set()).add(member))
    if (status !== 'waiting' || mode !== 'queue') return
    const usher = this.#ushers.get(resource)
    if (usher !== undefined && usher !== member) this.#tally.usherChanges++
    this.#ushers.set(resource, member)
  }

  pulsed(beats: readonly Beat[], replies: readonly BeatReply[]): void {
    for (const [index, { fences }] of beats.entries()) {
      const reply = replies[index]
      if (!fences || reply?.status !== 'held') continue
      if (reply.fence === fences.first) this.#tally.raises++
      else this.#tally.refusedRaises++
    }
  }

  restarted(kept: Kept): void {
    this.#tally.restarts++
    if (kept !== 'all') this.#tally.forgetfulRestarts++
  }

  total(): MemberTally {
    const granted = [...this.#granted.values()]
    const majorities = granted.filter(({ size }) => size >= this.#majority && size < this.#members).length
    return { ...this.#tally, majorities }
  }
}
