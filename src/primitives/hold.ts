/// <reference lib="esnext.disposable" preserve="true" />
import { type Duration, toMs } from '../base/duration.js'
import { detached } from '../base/env.js'
import { HoldfastError, invalid } from '../base/errors.js'
import { nothing } from '../base/nothing.js'
import { EXCLUSIVE } from '../contract/constants.js'
import { leaseForMs } from '../contract/validity.js'
import { type Engine, notHeld } from '../engine/engine.js'
import { unwatchHold } from '../engine/forgotten.js'
import type { Lease } from '../engine/lease.js'
import type { Entry, Request } from '../engine/request.js'
import { encodeExported } from './exported.js'

/**
 * A lock that you hold. Release it when the work is done: by hand, with `await using`, or by using
 * `run` in the first place.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { memory } from 'holdfast/memory'
 *
 * const locks = new Holdfast(memory())
 * const hold = await locks.mutex('order:42').acquire({ wait: '5s' })
 * try {
 *   console.log('my fence is', hold.fence)
 * } finally {
 *   await hold.release()
 * }
 * ```
 */
export class Hold implements AsyncDisposable {
  readonly #engine: Engine
  readonly #entry: Entry
  readonly #onRelease: () => void
  #released: boolean | Promise<boolean> | null = null
  #controller: AbortController | null = null
  #unhook: () => void = nothing

  /** @internal Made by `acquire`, `tryAcquire`, `run` and `adopt`. */
  constructor(engine: Engine, entry: Entry, onRelease: () => void = nothing) {
    this.#engine = engine
    this.#entry = entry
    this.#onRelease = onRelease
  }

  get #request(): Request {
    return this.#entry.request
  }

  get #lease(): Lease {
    // Set when the request was granted, before this hold was made.
    return this.#request.lease as Lease
  }

  /** The name of what is held. */
  get resource(): string {
    return this.#request.resource
  }

  /**
   * The number of this hold, greater than that of every earlier hold of the resource. Pass it to
   * whatever checks fences.
   */
  get fence(): number {
    return this.#request.fence
  }

  /** How many permits it has: 2^30 (all) for a mutex or a writer, 1 for a reader. */
  get permits(): number {
    return this.#entry.permits
  }

  /**
   * Whether it excludes all other holders: true for a mutex and a writer. Fence guards take only
   * such holds.
   */
  get isExclusive(): boolean {
    return this.#entry.permits === EXCLUSIVE
  }

  /**
   * Whether you can trust the hold now, by the clock. Correct even right after a pause of the
   * process.
   */
  get isValid(): boolean {
    return this.#released === null && this.#engine.checkValidity(this.#request)
  }

  /** How long you can trust the hold if nothing renews it; 0 when it is released or lost. */
  get remainingMs(): number {
    return this.isValid ? this.#lease.validUntil - this.#engine.env.now() : 0
  }

  /**
   * Aborts when the hold is lost, with a HOLD_LOST error as its reason. A release does not abort
   * it.
   */
  get signal(): AbortSignal {
    const controller = this.#controller ?? new AbortController()
    if (!this.#controller) {
      this.#controller = controller
      this.#engine.checkValidity(this.#request)
      // Refers to this hold: while its signal is in use, the hold is not forgotten. Detached, or
      // listeners would be inside the run that noticed the loss, and could enter what it holds.
      this.#unhook = this.#request.onLoss((reason) => detached(() => this.#controller?.abort(reason)))
      // The request may outlive this hold under nested holds: its later loss is not this hold's.
      if (this.#released !== null) this.#unhook()
    }
    return controller.signal
  }

  /**
   * Makes the hold last at least `duration` from now, even if renewals fail. It never shortens the
   * hold. Rejects with INVALID_ARGUMENT beyond `maxHold`. On ZooKeeper and etcd it rejects with
   * UNSUPPORTED beyond the session.
   *
   * @example
   * ```ts
   * import type { Hold } from 'holdfast'
   *
   * export async function beforeTheLongPart(hold: Hold) {
   *   await hold.extend('1m')
   * }
   * ```
   */
  async extend(duration: Duration): Promise<void> {
    const ms = toMs(duration, { name: 'extend', minMs: 1 })
    this.#throwIfNotHeld()
    const renew = () => this.#engine.renew(this.#request, this.#lease, { leaseMs: leaseForMs(ms) })
    let reply = await renew()
    const isCapped = this.#request.spec.maxHoldMs !== null
    // A member of a quorum that joined the hold just now has the usual lease: the next renewal
    // reaches it.
    const mayBeLate = !isCapped && this.#engine.capabilities.perHoldLease
    if (reply.leaseMs + 1 < ms && mayBeLate) reply = await renew()
    if (reply.leaseMs + 1 >= ms) return
    throw (isCapped ? cappedByMaxHold : cappedBySession)(this.resource, ms, reply.leaseMs)
  }

  /**
   * Turns a writer's hold into a reader's, so that other readers may enter. No other writer can
   * come between. The fence stays.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * await locks.readWrite('config').write.run(async (hold) => {
   *   console.log('changing it, alone')
   *   await hold.downgrade()
   *   console.log('reading it, with others; nobody has changed it since')
   * })
   * ```
   */
  async downgrade(): Promise<void> {
    if (this.#request.spec.capacity !== EXCLUSIVE)
      throw invalid(
        'downgrade() is for a writer; give permits of a semaphore back with shrink()',
        this.resource,
      )
    await this.#shrink(1)
  }

  /**
   * Keeps this many permits of a semaphore, and gives the others back.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   *
   * const locks = new Holdfast(memory())
   * await using hold = await locks.semaphore('gpu', 4).acquire({ permits: 3 })
   * await hold.shrink(1)
   * ```
   */
  async shrink(permits: number): Promise<void> {
    if (this.#request.spec.capacity === EXCLUSIVE)
      throw invalid('shrink() is for semaphores; a writer becomes a reader with downgrade()', this.resource)
    if (!Number.isSafeInteger(permits) || permits < 1 || permits > this.permits)
      throw invalid(
        `shrink() takes a number from 1 to ${this.permits}; to give all back, release`,
        this.resource,
      )
    await this.#shrink(permits)
  }

  async #shrink(permits: number): Promise<void> {
    this.#throwIfNotHeld()
    this.#entry.permits = Math.min(this.#entry.permits, permits)
    await this.#engine.shrink(this.#request, this.#lease)
  }

  /**
   * Gives the hold back, so that the next in line gets it. Further calls do nothing. Resolves with
   * false if the hold had been lost before. Rejects only if the store cannot be reached; the hold
   * then ends with its lease.
   */
  release(): Promise<boolean> {
    const released = this.giveBack()
    return typeof released === 'boolean' ? Promise.resolve(released) : released
  }

  /** @internal As `release`, without a promise if the store answers synchronously. */
  giveBack(): boolean | Promise<boolean> {
    if (this.#released === null) {
      unwatchHold(this.#entry)
      this.#released = this.#engine.leave(this.#entry)
      this.#unhook()
      this.#onRelease()
    }
    return this.#released
  }

  /**
   * @internal It is renewed no more, unless by `extend`: it ends with its lease, also if nobody
   * releases it.
   */
  letLapse(): void {
    unwatchHold(this.#entry)
    this.#lease.isLeftToLapse = true
  }

  /** @internal Why it was lost, if it was. */
  get lostBecause(): HoldfastError | null {
    return this.#request.lostBecause
  }

  /** @internal Whether `release` was called. */
  get isReleased(): boolean {
    return this.#released !== null
  }

  /**
   * The hold as text, for `locks.adopt` in another process. It stays held here until it is adopted,
   * and is lost here from then on. Anyone with the text can take the hold: treat it like a
   * password. A reader that shares its lease with others of this process is refused with
   * UNSUPPORTED, unless the lock has `order: 'strict'`.
   *
   * @example
   * ```ts
   * import type { Hold, Holdfast } from 'holdfast'
   *
   * export async function handOver(hold: Hold, receiver: Holdfast) {
   *   const exported = await hold.export()
   *   return receiver.adopt(exported)
   * }
   * ```
   */
  async export(): Promise<string> {
    this.#throwIfNotHeld()
    if (this.#lease.served.length > 1) throw notAlone(this.resource)
    await this.#engine.renew(this.#request, this.#lease, {})
    // Another process will release it, so it must outlive this object.
    unwatchHold(this.#entry)
    return encodeExported(this.#engine.space, this.#lease)
  }

  /** For `await using`: releases. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  #throwIfNotHeld(): void {
    if (this.#released !== null) throw notHeld(this.resource)
    if (!this.#engine.checkValidity(this.#request)) throw this.#request.lostBecause ?? notHeld(this.resource)
  }
}

function notAlone(resource: string): HoldfastError {
  const message = `This reader of '${resource}' shares its lease with other readers of this process, which would lose it on export(); use readWrite(name, { order: 'strict' }), where each reader has its own lease`
  return new HoldfastError('UNSUPPORTED', message, { resource })
}

function cappedByMaxHold(resource: string, askedMs: number, leftMs: number): HoldfastError {
  const message = `extend(${Math.round(askedMs)} ms) passes the maxHold of '${resource}', which ends in ${Math.round(leftMs)} ms; acquire with a longer maxHold`
  return new HoldfastError('INVALID_ARGUMENT', message, { resource })
}

function cappedBySession(resource: string, askedMs: number, leftMs: number): HoldfastError {
  const message = `extend(${Math.round(askedMs)} ms) is more than this store can promise for '${resource}': its session lasts for ${Math.round(leftMs)} ms at a time; raise sessionTimeout (ZooKeeper) or ttl (etcd), or rely on renewals`
  return new HoldfastError('UNSUPPORTED', message, { resource })
}
