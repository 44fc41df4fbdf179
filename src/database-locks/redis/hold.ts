/// <reference lib="esnext.disposable" preserve="true" />
import type { Cancel, Env } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'
import { nothing } from '../../base/nothing.js'
import { trustedUntil } from '../../contract/validity.js'
import { ANSWER_MS } from '../limits.js'
import { answered, explainPeer, untilAnswered } from './answers.js'
import type { PeerGrant } from './claim.js'

/** A hold is renewed at this part of its lease, as Redisson's watchdog does. */
const RENEWALS_PER_LEASE = 3
/** A renewal that has failed is tried again after this part of the lease. */
const RETRIES_PER_LEASE = 10

/**
 * A lock in the format of a peer that you hold: until it is released, or its lease ends without a
 * renewal. It has no fence unless the format has one.
 */
export class PeerHold implements AsyncDisposable {
  /** The name that was locked. */
  readonly resource: string
  readonly #grant: PeerGrant
  readonly #env: Env
  readonly #controller = new AbortController()
  #validUntil: number
  #released: Promise<boolean> | undefined
  #cancelRenewal: Cancel = nothing
  #cancelEnd: Cancel = nothing
  /** Why the newest renewal has failed. */
  #failure: HoldfastError | undefined

  /** @internal */
  constructor(resource: string, grant: PeerGrant, env: Env) {
    this.resource = resource
    this.#grant = grant
    this.#env = env
    this.#validUntil = trustedUntil(grant.sentAt, grant.leaseMs)
    this.#renewLater(grant.sentAt + grant.leaseMs / RENEWALS_PER_LEASE - env.now())
    this.#endLater()
  }

  /**
   * Whether you can trust the hold now, by the monotonic clock. Correct even right after a pause of
   * the process.
   */
  get isValid(): boolean {
    if (this.#released || this.#controller.signal.aborted) return false
    if (this.#env.now() < this.#validUntil) return true
    this.#lose('its lease has ended without a renewal', this.#failure)
    return false
  }

  /** How long you can trust the hold if nothing renews it; 0 when it is released or lost. */
  get remainingMs(): number {
    return this.isValid ? this.#validUntil - this.#env.now() : 0
  }

  /**
   * Aborts when the hold is lost, with a HOLD_LOST error as its reason. A release does not abort
   * it.
   */
  get signal(): AbortSignal {
    void this.isValid
    return this.#controller.signal
  }

  /**
   * Releases the lock. Resolves with whether it was still held. Rejects only if the server cannot
   * be reached: the lock then ends with its lease. Safe to call twice.
   */
  release(): Promise<boolean> {
    this.#released ??= this.isValid ? this.#release() : Promise.resolve(false)
    return this.#released
  }

  /** Lets `await using` release it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  async #release(): Promise<boolean> {
    this.#stop()
    const deadline = Math.min(this.#validUntil, this.#env.now() + ANSWER_MS)
    let sent = 0
    const wasHeld = await untilAnswered(this.#env, deadline, ANSWER_MS, () => {
      sent++
      return this.#grant.claim.release()
    })
    // An earlier sending may have released it, without an answer.
    return wasHeld || sent > 1
  }

  #renewLater(ms: number): void {
    this.#cancelRenewal()
    this.#cancelRenewal = this.#env.timer(ms, () => void this.#renew(), { keepAlive: false })
  }

  /** Never rejects. */
  async #renew(): Promise<void> {
    if (!this.isValid) return
    const { claim, leaseMs } = this.#grant
    const sentAt = this.#env.now()
    try {
      const isHeld = await answered(this.#env, leaseMs / RENEWALS_PER_LEASE, claim.renew(leaseMs))
      if (!isHeld) return this.#lose('the server no longer has it: it expired, or another program broke it')
      this.#failure = undefined
      this.#validUntil = Math.max(this.#validUntil, trustedUntil(sentAt, leaseMs))
      if (this.isValid) this.#renewLater(sentAt + leaseMs / RENEWALS_PER_LEASE - this.#env.now())
    } catch (error) {
      this.#failure = explainPeer(error)
      // The end of the lease decides, if no later attempt succeeds.
      if (this.isValid) this.#renewLater(leaseMs / RETRIES_PER_LEASE)
    }
  }

  #endLater(): void {
    const leftMs = this.#validUntil - this.#env.now()
    const check = (): void => {
      if (this.isValid) this.#endLater()
    }
    this.#cancelEnd = this.#env.timer(leftMs, check, { keepAlive: false })
  }

  #stop(): void {
    this.#cancelRenewal()
    this.#cancelEnd()
  }

  #lose(why: string, cause?: HoldfastError): void {
    if (this.#released) return
    this.#stop()
    const message = `The lock '${this.resource}' was lost: ${why}`
    const details = { resource: this.resource, store: 'redis', ...(cause && { cause }) }
    this.#controller.abort(new HoldfastError('HOLD_LOST', message, details))
    // The server may keep it a little longer than this process trusts it.
    void answered(this.#env, ANSWER_MS, this.#grant.claim.release()).catch(nothing)
  }
}
