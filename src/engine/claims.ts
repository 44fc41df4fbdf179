import { isRetryable } from '../base/errors.js'
import { isPromise } from '../calls/calls.js'
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
    const { env, capabilities, calls } = this.#engine
    lease.turn.ask(lease.successors.fencesWanted(lease))
    const now = env.now()
    lease.asked(now, capabilities.perHoldLease)
    this.#send({ lease, mode, attempt: 1, deadline: now + calls.storeTimeoutMs }, now)
  }

  #send(claim: Claiming, sentAt: number): void {
    const { calls, connection, floors, capabilities } = this.#engine
    const { lease, mode, deadline } = claim
    const send = (): Answer<ClaimReply> =>
      connection.claim(lease.claimRequest(mode, floors.of(lease.resource)))
    const listener = {
      onAnswer: (reply: ClaimReply) => this.#onAnswer(lease, reply, sentAt),
      onFailure: (error: unknown) => this.#onFailure(claim, error, sentAt),
      onLate: (reply: ClaimReply) => this.#giveBackUnwanted(lease, reply),
    }
    if (!capabilities.answersAtOnce) return calls.start(calls.oneCallUntil(deadline), send, listener)
    const answer = send()
    if (isPromise(answer)) calls.start(calls.oneCallUntil(deadline), () => answer, listener)
    else listener.onAnswer(answer)
  }

  #onAnswer(lease: Lease, reply: ClaimReply, sentAt: number): void {
    if (lease.phase === 'asking') this.#engine.news.onClaimReply(lease, reply, sentAt)
    else this.#giveBackUnwanted(lease, reply)
  }

  /** An answer that finds its request gone, however late, gives back what it brings. */
  #giveBackUnwanted(lease: Lease, reply: ClaimReply): void {
    const isGone = !this.#engine.leases.has(lease.id) && !lease.isHandedOver
    if (isGone && reply.status !== 'refused') void this.#engine.withdraw(lease)
  }

  #onFailure(claim: Claiming, error: unknown, sentAt: number): void {
    const { env, calls } = this.#engine
    const { lease, attempt, deadline, before } = claim
    if (lease.phase !== 'asking') return
    lease.heartbeat.unanswered(sentAt, error)
    const pauseMs = calls.retryInMs(attempt)
    if (!isRetryable(error) || env.now() + pauseMs >= deadline)
      return lease.successors.onFailure(lease, this.#engine.unavailable(lease, calls.reasonOf(error, before)))
    void calls.pause(pauseMs).then(() => {
      if (lease.phase === 'asking') this.#send({ ...claim, attempt: attempt + 1, before: error }, env.now())
    })
  }
}

/** A lease that is being asked for. */
interface Claiming {
  readonly lease: Lease
  readonly mode: ClaimMode
  readonly attempt: number
  readonly deadline: number
  /** The failure of the attempt before. */
  readonly before?: unknown
}
