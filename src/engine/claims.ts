import { isRetryable } from '../base/errors.js'
import type { Answer, ClaimMode, ClaimReply } from '../contract/store.js'
import type { Engine } from './engine.js'
import type { Lease } from './lease.js'

/** Asks the store for leases, each until there is an answer. */
export class Claims {
  readonly #engine: Engine

  constructor(engine: Engine) {
    this.#engine = engine
  }

  start(lease: Lease, mode: ClaimMode): void {
    const { env, capabilities, news, leases } = this.#engine
    // Registered before anything is sent: the push of a grant may overtake the answer.
    leases.set(lease.id, lease)
    lease.turn.ask(lease.successors.fencesWanted(lease))
    lease.asked(env.now(), capabilities.perHoldLease)
    if (!capabilities.answersAtOnce) return void this.#ask(lease, mode)
    try {
      const reply = this.#send(lease, mode)
      if (reply instanceof Promise) void this.#ask(lease, mode, reply)
      else news.onClaimReply(lease, reply, lease.acknowledgedAt)
    } catch (error) {
      this.#fail(lease, error)
    }
  }

  /** Never rejects. `first`: the attempt that is under way. */
  async #ask(lease: Lease, mode: ClaimMode, first?: Promise<ClaimReply>): Promise<void> {
    const { env, calls, news } = this.#engine
    let sentAt = lease.acknowledgedAt
    const deadline = sentAt + calls.storeTimeoutMs
    for (let attempt = 1; lease.phase === 'asking'; attempt++) {
      try {
        const send = async (): Promise<ClaimReply> => (attempt === 1 && first) || this.#send(lease, mode)
        const reply = await calls.within(calls.oneCallUntil(deadline), send)
        if (lease.phase === 'asking') news.onClaimReply(lease, reply, sentAt)
        return
      } catch (error) {
        if (lease.phase !== 'asking') return
        lease.heartbeat.unanswered(sentAt, error)
        const pauseMs = calls.retryInMs(attempt)
        if (!isRetryable(error) || env.now() + pauseMs >= deadline) return this.#fail(lease, error)
        await calls.pause(pauseMs)
        sentAt = env.now()
      }
    }
  }

  /** An answer that finds the request gone, however late, gives back what it brings. */
  #send(lease: Lease, mode: ClaimMode): Answer<ClaimReply> {
    const { connection, floors, leases } = this.#engine
    const answer = connection.claim(lease.claimRequest(mode, floors.of(lease.resource)))
    if (!(answer instanceof Promise)) return answer
    return answer.then((reply) => {
      if (!leases.has(lease.id) && reply.status !== 'refused') void this.#engine.withdraw(lease)
      return reply
    })
  }

  #fail(lease: Lease, cause: unknown): void {
    lease.successors.onFailure(lease, this.#engine.unavailable(lease, cause))
  }
}
