import type { Member } from './member.js'
import { Vote, type VoteState } from './vote.js'

/** The votes of all members on one claim, and what a majority of them means. */
export class Votes implements Iterable<Vote> {
  readonly #votes: readonly Vote[]
  readonly #majority: number

  constructor(members: readonly Member[], majority: number) {
    this.#votes = members.map((member) => new Vote(member))
    this.#majority = majority
  }

  [Symbol.iterator](): Iterator<Vote> {
    return this.#votes[Symbol.iterator]()
  }

  of(member: Member): Vote {
    return this.#votes[member.index] as Vote
  }

  count(...states: VoteState[]): number {
    let count = 0
    for (const { state } of this.#votes) if (states.includes(state)) count++
    return count
  }

  /** Whether these, if all of them become grants, are a majority. */
  canBeMajority(...states: VoteState[]): boolean {
    return this.count(...states) >= this.#majority
  }

  /** Those that have granted the claim. */
  get granted(): Vote[] {
    return this.#votes.filter(({ state }) => state === 'granted')
  }

  /** Those that may still have something of the claim. */
  get owed(): Vote[] {
    return this.#votes.filter(({ isOwed }) => isOwed)
  }

  /** The highest fence of a grant. */
  get highestFence(): number {
    let highest = 0
    for (const { state, fence } of this.#votes) if (state === 'granted') highest = Math.max(highest, fence)
    return highest
  }

  /**
   * Whether a majority has granted the claim with this fence, and still covers it: a vote that has
   * lapsed may have gone to another client meanwhile.
   */
  agreeOn(target: number, now: number): boolean {
    let exact = 0
    for (const { state, fence, until } of this.#votes)
      if (state === 'granted' && fence === target && until > now) exact++
    return exact >= this.#majority
  }

  /** The end of what a majority covers. */
  get coveredUntil(): number {
    let latest = 0
    for (const { state, until } of this.#votes)
      if (state === 'granted' && until > latest && this.#cover(until)) latest = until
    return latest
  }

  #cover(until: number): boolean {
    let count = 0
    for (const vote of this.#votes) if (vote.state === 'granted' && vote.until >= until) count++
    return count >= this.#majority
  }

  /** Whether others wait; undefined: a member cannot tell. */
  get isWanted(): boolean | undefined {
    let isWanted: boolean | undefined = false
    for (const vote of this.#votes) {
      if (vote.state !== 'granted') continue
      if (vote.isWanted) return true
      if (vote.isWanted === undefined) isWanted = undefined
    }
    return isWanted
  }
}
