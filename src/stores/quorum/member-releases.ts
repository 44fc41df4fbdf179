import type { Env } from '../../base/env.js'
import { nothing } from '../../base/nothing.js'
import type { QuorumClaim } from './claim.js'
import type { Member } from './member.js'
import type { Members } from './members.js'

/** A claim that a member may still have, although nobody wants it. */
interface Owed {
  readonly resource: string
  readonly nonce: string
  /** It has lapsed by itself. */
  readonly until: number
}

/** Tells the members what this client no longer has. What cannot be told is told later. */
export class MemberReleases {
  readonly #env: Env
  readonly #members: Members
  readonly #longestLeaseMs: number
  readonly #owed = new Map<Member, Owed[]>()
  #underWay = 0
  #onAllSent: () => void = nothing

  constructor(env: Env, members: Members, longestLeaseMs: number) {
    this.#env = env
    this.#members = members
    this.#longestLeaseMs = longestLeaseMs
  }

  /**
   * Ends a claim. false: no majority had it any more. Rejects where that is not known. Waits for
   * the usher as well, for a moment: the next claim finds the lock free there.
   */
  release(claim: QuorumClaim): Promise<boolean> {
    // A place in line is only on the usher.
    const needed = claim.phase === 'held' ? this.#members.majority : 1
    const { resource, usher } = claim
    const owed = claim.end().sort((a, b) => Number(b.member === usher) - Number(a.member === usher))
    const sentAt = this.#env.now()
    return new Promise((resolve, reject) => {
      let [yes, unknown, pending] = [0, 0, owed.length]
      let isUsherPending = owed[0]?.member === usher
      let isGrace = false
      const settle = (): void => {
        if (yes >= needed && !isUsherPending) resolve(true)
        else if (yes >= needed && !isGrace) {
          isGrace = true
          this.#env.timer(this.#members.graceMs(sentAt), () => resolve(true), { keepAlive: true })
        } else if (yes >= needed) return
        else if (yes + pending + unknown < needed) resolve(false)
        else if (pending === 0) reject(this.#members.unavailable())
      }
      settle()
      for (const { member, nonce } of owed)
        this.#release(member, resource, nonce, (wasThere) => {
          pending--
          if (member === usher) isUsherPending = false
          if (wasThere === null) unknown++
          else if (wasThere) yes++
          settle()
        })
    })
  }

  giveBack(member: Member, resource: string, nonce: string): void {
    this.#release(member, resource, nonce, nothing)
  }

  /** Gives null if it could not be told; then it is told when the member is back. */
  #release(member: Member, resource: string, nonce: string, done: (wasThere: boolean | null) => void): void {
    const end = (wasThere: boolean | null): void => {
      this.#underWay--
      done(wasThere)
      if (this.#underWay === 0) this.#onAllSent()
    }
    this.#underWay++
    const onFailure = (): void => {
      const owed = this.#owed.get(member) ?? []
      this.#owed.set(member, owed)
      owed.push({ resource, nonce, until: this.#env.now() + this.#longestLeaseMs })
      end(null)
    }
    if (!member.isUp) return onFailure()
    member.start((connection) => connection.release(resource, nonce), { onAnswer: end, onFailure })
  }

  /** Resolves when none is under way: all are answered, or have failed. */
  async allSent(): Promise<void> {
    if (this.#underWay > 0)
      await new Promise<void>((resolve) => {
        this.#onAllSent = resolve
      })
  }

  /** A member votes again. */
  flush(member: Member): void {
    const owed = this.#owed.get(member) ?? []
    this.#owed.delete(member)
    const now = this.#env.now()
    for (const { resource, nonce, until } of owed) if (until > now) this.giveBack(member, resource, nonce)
  }
}
