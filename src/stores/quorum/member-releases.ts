import type { Env } from '../../base/env.js'
import { nothing } from '../../base/nothing.js'
import type { QuorumClaim } from './claim.js'
import type { Member } from './member.js'
import type { Members } from './members.js'

/** Tells the members what this client no longer has. What cannot be told is told later. */
export class MemberReleases {
  readonly #env: Env
  readonly #members: Members
  /**
   * By member: the resources of claims that it may still have, by nonce. However old: a network
   * that was cut may deliver a claim when it is whole again, and the member grants it then.
   */
  readonly #owed = new Map<Member, Map<string, string>>()
  /** By nonce, whether the claim was answered while its release was under way. */
  readonly #underWay = new Map<string, boolean>()
  #onAllSent: () => void = nothing

  constructor(env: Env, members: Members) {
    this.#env = env
    this.#members = members
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

  /** Where a release is under way already, its answer tells whether it came before the claim. */
  giveBack(member: Member, resource: string, nonce: string): void {
    if (this.#underWay.has(nonce)) this.#underWay.set(nonce, true)
    else this.#release(member, resource, nonce, nothing)
  }

  /** Gives null if it could not be told; then it is told when the member is back. */
  #release(member: Member, resource: string, nonce: string, done: (wasThere: boolean | null) => void): void {
    const end = (wasThere: boolean | null): void => {
      const isAnswered = this.#underWay.get(nonce) === true
      this.#underWay.delete(nonce)
      if (wasThere === false && isAnswered) this.giveBack(member, resource, nonce)
      done(wasThere)
      if (this.#underWay.size === 0) this.#onAllSent()
    }
    this.#underWay.set(nonce, false)
    const onFailure = (): void => {
      const owed = this.#owed.get(member) ?? new Map<string, string>()
      this.#owed.set(member, owed)
      owed.set(nonce, resource)
      end(null)
    }
    if (!member.isUp) return onFailure()
    member.start((connection) => connection.release(resource, nonce), { onAnswer: end, onFailure })
  }

  /** Resolves when none is under way: all are answered, or have failed. */
  async allSent(): Promise<void> {
    if (this.#underWay.size > 0)
      await new Promise<void>((resolve) => {
        this.#onAllSent = resolve
      })
  }

  /** A member votes again. */
  flush(member: Member): void {
    const owed = this.#owed.get(member) ?? []
    this.#owed.delete(member)
    for (const [nonce, resource] of owed) this.giveBack(member, resource, nonce)
  }
}
