import type { Env } from '../../base/env.js'
import { HoldfastError, invalid } from '../../base/errors.js'
import { runWith } from '../run.js'
import { Acquisition } from './acquisition.js'
import type { PeerClaim, PeerGrant } from './claim.js'
import type { PeerHold } from './hold.js'
import { type PeerLockOptions, type PeerRequest, readPeerRequest } from './options.js'

/** What is particular to a lock of one format. */
export interface PeerLockKind<H extends PeerHold> {
  readonly env: Env
  readonly leaseMs: number
  createClaim(name: string): PeerClaim
  createHold(name: string, grant: PeerGrant): H
  /** Runs work so that nested calls can find the claim. Left out: the format has no re-entry. */
  inside?<T>(name: string, hold: H, claim: PeerClaim, work: () => Promise<T>): Promise<T>
}

/** A lock in the format of a peer. Made by `plainKeyLock` and `redissonLock`. */
export class PeerLock<H extends PeerHold = PeerHold> {
  /** The name that the peer knows, too. */
  readonly name: string
  readonly #kind: PeerLockKind<H>

  /** @internal */
  constructor(name: string, kind: PeerLockKind<H>) {
    this.name = name
    this.#kind = kind
  }

  /**
   * Takes the lock, and waits until it is free. Throws ACQUIRE_TIMEOUT when the wait is over,
   * ABORTED when the signal aborts, STORE_UNAVAILABLE if the server does not answer.
   *
   * @example
   * ```ts
   * import { redissonLock } from 'holdfast/redis'
   * import { Redis } from 'ioredis'
   *
   * const locks = redissonLock(new Redis())
   * await using hold = await locks.mutex('order:42').acquire({ wait: '5s' })
   * console.log('held, also for Redisson:', hold.isValid)
   * ```
   */
  async acquire(options: PeerLockOptions = {}): Promise<H> {
    const { hold } = await this.#acquire(readPeerRequest(options, this.#kind.leaseMs))
    return hold
  }

  /**
   * Takes the lock if it is free; resolves with null if it is not.
   *
   * @example
   * ```ts
   * import { plainKeyLock } from 'holdfast/redis'
   * import { Redis } from 'ioredis'
   *
   * const hold = await plainKeyLock(new Redis()).mutex('report').tryAcquire()
   * if (hold === null) console.log('another program is working on it')
   * ```
   */
  async tryAcquire(options: Omit<PeerLockOptions, 'wait'> = {}): Promise<H | null> {
    const request = { ...readPeerRequest(options, this.#kind.leaseMs), waitMs: 0 }
    return (await this.#take(request))?.hold ?? null
  }

  /**
   * Runs work with the lock, and releases it. Rejects with HOLD_LOST if the lock was lost before
   * the work was done; an error of the work itself comes first.
   *
   * @example
   * ```ts
   * import { redissonLock } from 'holdfast/redis'
   * import { Redis } from 'ioredis'
   *
   * await redissonLock(new Redis()).mutex('report').run(async ({ signal }) => {
   *   await fetch('https://example.com/report', { signal })
   * })
   * ```
   */
  async run<T>(work: (hold: H) => T | PromiseLike<T>, options: PeerLockOptions = {}): Promise<T> {
    if (typeof work !== 'function') throw invalid('run() takes a function as its first argument', this.name)
    const { hold, claim } = await this.#acquire(readPeerRequest(options, this.#kind.leaseMs))
    const workWith = async (): Promise<T> => work(hold)
    return runWith(hold, 'redis', async () => {
      return this.#kind.inside?.(this.name, hold, claim, workWith) ?? workWith()
    })
  }

  async #acquire(request: PeerRequest): Promise<{ hold: H; claim: PeerClaim }> {
    const taken = await this.#take(request)
    if (taken) return taken
    const message = `'${this.name}' could not be acquired within ${request.waitMs} ms; another program holds it`
    throw new HoldfastError('ACQUIRE_TIMEOUT', message, {
      resource: this.name,
      store: 'redis',
      retryable: true,
    })
  }

  async #take(request: PeerRequest): Promise<{ hold: H; claim: PeerClaim } | null> {
    const claim = this.#kind.createClaim(this.name)
    const grant = await new Acquisition(claim, this.name, request, this.#kind.env).grant()
    return grant && { hold: this.#kind.createHold(this.name, grant), claim }
  }
}
