import { HoldfastError } from '../base/errors.js'
import { lineFull } from '../calls/limits.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type {
  Beat,
  BeatReply,
  ClaimReply,
  Gone,
  Granted,
  GrantedPush,
  Held,
  Push,
  Refused,
  Waiting,
} from '../contract/store.js'
import { trustedUntil } from '../contract/validity.js'
import type { Engine } from './engine.js'
import type { Lease } from './lease.js'
import type { RequestSpec } from './spec.js'

/**
 * Where a session's time is nearly over, or a hold's cap is near, the store is not asked more and
 * more often.
 */
const LEAST_TERM_MS = 100

/**
 * What the store says of a lease, by an answer or a push. Nothing else changes what the client
 * believes of it.
 */
export class News {
  readonly #engine: Engine

  constructor(engine: Engine) {
    this.#engine = engine
  }

  onClaimReply(lease: Lease, reply: ClaimReply, sentAt: number): void {
    if (reply.status === 'refused') return this.#refused(lease, reply)
    lease.heartbeat.silentSince = null
    if (reply.status === 'granted') this.#granted(lease, reply, sentAt)
    else this.#waiting(lease, reply, sentAt)
  }

  #refused(lease: Lease, { reason, capacity }: Refused): void {
    lease.end()
    this.#engine.forget(lease)
    const { resource, successors, spec } = lease
    if (reason === 'busy') return successors.onFailure(lease, null)
    if (reason === 'capacity') return successors.onFailure(lease, capacityMismatch(spec, capacity))
    if (reason === 'full') return successors.onTurnedAway(lease, lineFull(resource, lease.maxWaiters ?? 0))
    const message = `The exported hold of '${resource}' is no longer held: it was released, lost or adopted already`
    successors.onFailure(lease, new HoldfastError('NOT_HELD', message, { resource }))
  }

  #granted(lease: Lease, { fence, leaseMs, isWanted, waitedMs = 0 }: Granted, sentAt: number): void {
    const leftAt = sentAt + waitedMs
    lease.turn.answered(isWanted, sentAt)
    lease.acknowledgedAt = Math.max(lease.acknowledgedAt, leftAt)
    this.#held(lease, fence, trustedUntil(leftAt, leaseMs))
  }

  #waiting(lease: Lease, reply: Waiting, sentAt: number): void {
    if (lease.phase === 'asking') lease.phase = 'waiting'
    lease.keptPlace(sentAt, reply)
    this.#noteTerm(lease, reply.presenceMs)
    this.#engine.pulse.plan(lease, reply)
    lease.successors.onAnswer(lease)
  }

  /** An answer that comes after the lease is over says nothing about the present. */
  onBeatReply(lease: Lease, beat: Beat, reply: BeatReply, sentAt: number): void {
    if (lease.phase === 'asking' || lease.phase === 'over') return
    lease.heartbeat.silentSince = null
    if (reply.status === 'held') this.#stillHeld(lease, beat, reply, sentAt)
    else if (lease.phase === 'held') this.#notHeld(lease, reply)
    else if (reply.status === 'gone') this.#gone(lease)
    else this.#waiting(lease, reply, sentAt)
  }

  #stillHeld(lease: Lease, beat: Beat, reply: Held, sentAt: number): void {
    const { turn } = lease
    if (lease.phase === 'held' && lease.grant !== reply.fence) return this.#lapsed(lease)
    turn.answered(reply.isWanted, sentAt)
    lease.acknowledgedAt = Math.max(lease.acknowledgedAt, sentAt)
    if (reply.block !== undefined) turn.refill(reply.block, beat.block ?? 1)
    this.#held(lease, reply.fence, trustedUntil(sentAt, reply.leaseMs))
  }

  #notHeld(lease: Lease, reply: Waiting | Gone): void {
    const { env, pulse } = this.#engine
    if (reply.status === 'gone')
      return this.#engine.lose(lease, 'the store no longer has it; it lapsed, or was broken or taken over')
    if (reply.grantsAbove >= lease.grant) return this.#lapsed(lease)
    // This answer was overtaken by the push of the grant: ask again, a little later.
    pulse.again(lease, env.now() + lease.aliveMs / 10)
  }

  /**
   * It has lapsed, and a repeated claim that was long under way has put its id in line again:
   * nobody wants that one.
   */
  #lapsed(lease: Lease): void {
    this.#engine.lose(lease, 'it lapsed')
    void this.#engine.withdraw(lease)
  }

  /** The place in line is gone: it lapsed, or an operator has cancelled it. */
  #gone(lease: Lease): void {
    lease.end()
    this.#engine.forget(lease)
    void this.#engine.cancellations.settle(lease)
  }

  /** An answer to a call for this one lease. false: the store no longer has it. */
  onRenewed(lease: Lease, reply: BeatReply | undefined, sentAt: number): reply is Held {
    if (lease.phase !== 'held') return false
    if (reply?.status !== 'held' || reply.fence !== lease.grant) {
      this.#engine.lose(lease, 'the store no longer has it; it lapsed, or was broken or taken over')
      // The id is in line again: see `#lapsed`.
      if (reply && reply.status !== 'gone') void this.#engine.withdraw(lease)
      return false
    }
    lease.acknowledgedAt = Math.max(lease.acknowledgedAt, sentAt)
    this.#held(lease, reply.fence, trustedUntil(sentAt, reply.leaseMs))
    return true
  }

  /** The store says that the lease is held, and until when. */
  #held(lease: Lease, fence: number, validUntil: number): void {
    const { env, pulse } = this.#engine
    const now = env.now()
    this.#noteTerm(lease, validUntil - lease.acknowledgedAt)
    if (lease.phase === 'held') lease.renewed(validUntil)
    else if (validUntil <= now) {
      // The answer took longer than what it grants: ask again before anybody relies on it. By the
      // agenda, never at once: where answers come without a turn of the event loop, no timer would
      // ever run.
      lease.phase = 'confirming'
      pulse.again(lease, now + 1)
      // The request waits: its process must not end meanwhile.
      return lease.successors.onAnswer(lease)
    } else lease.granted(fence, validUntil, now)
    pulse.plan(lease)
    lease.successors.onAnswer(lease)
  }

  #noteTerm(lease: Lease, termMs: number): void {
    if (!this.#engine.capabilities.perHoldLease) lease.sessionMs = Math.max(termMs, LEAST_TERM_MS)
  }

  onPush(push: Push): void {
    const { env, pulse, states, leases } = this.#engine
    if (push.type === 'state') return states.changed(push.key)
    if (push.type === 'gap') {
      states.changedAny()
      return pulse.hurryAll()
    }
    const lease = leases.get(push.id)
    if (push.type === 'granted') this.#handedOff(lease, push)
    else if (push.type === 'wanted') {
      lease?.turn.wanted(env.now())
      if (lease?.isIdle) this.#engine.goOn(lease, false)
    } else if (lease) this.#revoked(lease)
  }

  #revoked(lease: Lease): void {
    if (lease.phase === 'held') this.#engine.lose(lease, 'it was broken or taken over')
    // It overtook the answer that grants the hold: ask again as soon as that has arrived.
    else if (lease.phase === 'asking') lease.heartbeat.isHurried = true
    else this.#gone(lease)
  }

  #handedOff(lease: Lease | undefined, push: GrantedPush): void {
    const { env, pulse, capabilities } = this.#engine
    const { resource, id, fence, heirs, isUnconfirmed } = push
    // Granted to a request that has given up, or by a message that travelled for too long: give it
    // back.
    if (!lease) {
      // A hold that was handed over is used by its id: late news must not take it away.
      if (this.#engine.isOwnId(id)) void this.#engine.withdraw({ resource, id })
      return
    }
    if (!lease.canBeGranted(fence)) return
    // Also where the pulse has found the grant before: only this push names the heirs.
    const isNew = lease.isPending || lease.grant === fence
    if (isNew && heirs?.length && lease.spec.passOn === 'heirs') lease.followedBy(heirs, fence)
    if (!lease.isPending) return
    const now = env.now()
    const validUntil = lease.handedOffUntil()
    if (capabilities.confirmHandOffs || isUnconfirmed || validUntil <= now) {
      lease.phase = 'confirming'
      return pulse.hurry(lease)
    }
    lease.granted(fence, validUntil, now)
    // Before the pulse: readers that were here when the claim was sent use the fences that came
    // with the grant.
    lease.successors.onAnswer(lease)
    if (lease.phase !== 'held') return
    if (lease.isAboutToEnd(now)) pulse.hurry(lease)
    else pulse.plan(lease)
  }
}

function capacityMismatch(spec: RequestSpec, actual: number | undefined): HoldfastError {
  const { resource, permits, capacity } = spec
  const kind = (of: number | undefined): string => (of === EXCLUSIVE ? 'a lock' : `a semaphore of ${of}`)
  const message =
    actual !== undefined && capacity !== EXCLUSIVE && permits > actual
      ? `'${resource}' was resized to ${actual}, so ${permits} permits can never be granted; ask for fewer, or resize() it`
      : `'${resource}' is in use as ${kind(actual)}, not as ${kind(capacity)}; use the same everywhere, or change a semaphore with resize()`
  return new HoldfastError('CAPACITY_MISMATCH', message, { resource })
}
