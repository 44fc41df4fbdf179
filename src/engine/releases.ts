import { nothing } from '../base/nothing.js'
import { isPromise } from '../calls/calls.js'
import type { Engine } from './engine.js'
import type { Lease } from './lease.js'

/** What a claim is known by in the store. */
interface ClaimId {
  readonly resource: string
  readonly id: string
}

/** Tells the store what this client no longer has or wants. `close()` waits for these calls. */
export class Releases {
  readonly #engine: Engine
  /** The ids that nobody wants any more, while the store is told so. */
  readonly #withdrawn = new Set<string>()
  #underWay = 0
  #onAllSent: () => void = nothing

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /**
   * Gives a hold back. false: the store no longer had it. Rejects when it cannot be reached until
   * then.
   */
  release(claim: ClaimId, until: number): boolean | Promise<boolean> {
    const { connection, env, calls, capabilities } = this.#engine
    let first: Promise<boolean> | undefined
    if (capabilities.answersAtOnce) {
      const answer = connection.release(claim.resource, claim.id)
      if (!isPromise(answer)) return answer
      first = answer
    }
    return this.#repeat(claim, Math.min(until, env.now() + calls.storeTimeoutMs), first)
  }

  /** Takes back whatever became of a claim. Never fails: it lapses by itself in the end. */
  async withdraw(claim: ClaimId): Promise<void> {
    this.#withdrawn.add(claim.id)
    try {
      await this.release(claim, Infinity)
    } catch {
      // The store cannot be reached.
    }
    this.#withdrawn.delete(claim.id)
  }

  /**
   * Leaves the place in line of a request that another lease serves now. Never rejects. A store
   * that does not know the place any more may have forgotten that lease as well: it is asked at
   * once.
   */
  async giveUpPlace(place: Lease, server: Lease): Promise<boolean> {
    place.end()
    this.#engine.forget(place)
    try {
      if (await this.release(place, server.validUntil)) return true
    } catch {
      // A place that stays lapses. If it is granted before, the grant is given back.
    }
    if (server.phase === 'held') this.#engine.pulse.hurry(server)
    return true
  }

  /** Whether the store is being told that nobody wants that claim. */
  isWithdrawn(id: string): boolean {
    return this.#withdrawn.has(id)
  }

  /** Resolves when none is under way. */
  async allSent(): Promise<void> {
    if (this.#underWay > 0)
      await new Promise<void>((resolve) => {
        this.#onAllSent = resolve
      })
  }

  /** `first`: the attempt that is under way. */
  #repeat({ resource, id }: ClaimId, deadline: number, first?: Promise<boolean>): Promise<boolean> {
    const { connection, calls } = this.#engine
    // Not there at a later attempt: the first one did it, and only its answer got lost.
    const again = async (): Promise<true> => {
      await connection.release(resource, id)
      return true
    }
    const ended = (): void => {
      if (--this.#underWay === 0) this.#onAllSent()
    }
    this.#underWay++
    const released = calls.repeated(deadline, (attempt) =>
      attempt > 1 ? again() : (first ?? connection.release(resource, id)),
    )
    released.then(ended, ended)
    return released
  }
}
