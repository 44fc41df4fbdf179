import { HoldfastError } from '../base/errors.js'
import { checkOptions } from '../base/options.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type { Entry } from '../engine/request.js'
import type { Hold } from '../primitives/hold.js'
import { Holdfast } from '../primitives/holdfast.js'
import type { LockKind } from '../primitives/options.js'
import { SHARED } from '../primitives/read-write.js'
import { enter, type LockContext, leave } from '../primitives/reentry.js'
import { holdOf, lostUnnoticed, settled } from '../primitives/run.js'
import { CallbackOrder, type CallbackSlot } from './callback-order.js'
import { closedClient, lockLost } from './dom-exception.js'
import { shapeAsInterface } from './interface.js'
import { Lock } from './lock.js'
import { resourceOf } from './names.js'
import { checkRequest, type LockRequest, toRequest } from './request.js'
import { snapshot } from './snapshot.js'
import type { LockGrantedCallback, LockManagerOptions, LockManagerSnapshot, LockOptions } from './types.js'
import { Unanswered } from './unanswered.js'

/** A store that does not answer for one lock must not keep another lock taken for longer. */
const LONGEST_WAIT_MS = 100

/**
 * The Web Locks API of browsers (`navigator.locks`), across machines. See `docs/web-locks.md`.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { sqlite } from 'holdfast/sqlite'
 * import { LockManager } from 'holdfast/web-locks'
 *
 * const locks = new LockManager(new Holdfast(sqlite('./locks.db')))
 * await locks.request('order:42', async (lock) => {
 *   console.log(lock.name, lock.mode)
 * })
 * ```
 */
export class LockManager {
  readonly #context: LockContext
  readonly #options: LockManagerOptions
  readonly #unanswered = new Unanswered()
  readonly #callbackOrder = new CallbackOrder()

  constructor(locks: Holdfast, options: LockManagerOptions = {}) {
    if (!(locks instanceof Holdfast))
      throw new TypeError('new LockManager() takes a client: new LockManager(new Holdfast(store))')
    if (typeof options !== 'object' || options === null)
      throw new TypeError("The options of new LockManager() are an object, such as { lease: '30s' }")
    this.#context = Holdfast.contextOf(locks)
    this.#options = checkOptions(options, { lease: true }, "{ lease: '30s' }")
  }

  /**
   * Requests a lock and calls back when it is granted. The lock is held until the promise that the
   * callback returned has settled. After the release, `request` settles in the same way. It rejects
   * with an AbortError if the lock is stolen or lost before.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   * import { LockManager } from 'holdfast/web-locks'
   *
   * const locks = new LockManager(new Holdfast(memory()))
   * const total = await locks.request('report', { mode: 'shared', signal: AbortSignal.timeout(5000) }, async () => 42)
   * console.log(total)
   * ```
   */
  request<T>(name: string, callback: (lock: Lock) => T): Promise<Awaited<T>>
  request<T>(name: string, options: LockOptions, callback: LockGrantedCallback<T>): Promise<Awaited<T>>
  async request(name: unknown, second: unknown, ...third: unknown[]): Promise<unknown> {
    const [options, callback] = third.length === 0 ? [undefined, second] : [second, third[0]]
    const request = toRequest(name, options, callback)
    this.#throwIfClosed()
    checkRequest(request)
    const slot = this.#callbackOrder.open()
    try {
      const entry = await this.#enter(request, slot)
      await slot.wait(this.#context.engine.env)
      const { callback: onGranted, signal } = request
      if (!entry) return onGranted(null)
      // Aborted after the grant, but before the callback.
      if (signal?.aborted) {
        void leave(this.#context.engine, entry)
        throw signal.reason
      }
      return this.#whileHeld(request, holdOf(this.#context, entry))
    } finally {
      slot.end()
    }
  }

  /**
   * Who holds and who waits, for every lock of the space. The answer may be outdated when you read
   * it: use it for display, not for decisions.
   *
   * @example
   * ```ts
   * import { Holdfast } from 'holdfast'
   * import { memory } from 'holdfast/memory'
   * import { LockManager } from 'holdfast/web-locks'
   *
   * const locks = new LockManager(new Holdfast(memory()))
   * const { held, pending } = await locks.query()
   * for (const { name, mode, clientId } of held) console.log(clientId, 'holds', name, mode)
   * console.log(pending.length, 'wait')
   * ```
   */
  async query(): Promise<LockManagerSnapshot> {
    this.#throwIfClosed()
    await this.#unanswered.wait()
    return snapshot(this.#context.operator)
  }

  #throwIfClosed(): void {
    try {
      this.#context.engine.throwIfClosed()
    } catch (error) {
      throw inWebTerms(error, undefined)
    }
  }

  /**
   * The claim goes to the store before any await, so requests arrive in the order in which they are
   * made.
   */
  async #enter(
    { name, mode, ifAvailable, steal, signal }: LockRequest,
    slot: CallbackSlot,
  ): Promise<Entry | null> {
    const permits = mode === 'shared' ? SHARED : EXCLUSIVE
    const same = {
      capacity: EXCLUSIVE,
      isReentrant: false,
      order: 'strict',
      primitive: 'web-lock',
    } as const
    const kind: LockKind = { resource: resourceOf(name), permits, ...same }
    const onAnswer = this.#unanswered.add()
    const onWaiting = (): void => {
      onAnswer()
      slot.end()
    }
    const limits = { waitMs: ifAvailable ? 0 : Infinity, signal, onWaiting }
    try {
      return await enter(this.#context, steal ? { ...kind, steal } : kind, this.#options, limits)
    } catch (error) {
      throw inWebTerms(error, signal)
    } finally {
      onAnswer()
    }
  }

  /**
   * Rejects at once if the lock is stolen or lost. The callback goes on, but its outcome is
   * ignored.
   */
  #whileHeld({ name, mode, callback }: LockRequest, hold: Hold): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const onLoss = (): void => reject(lockLost(name, hold.signal.reason))
      hold.signal.addEventListener('abort', onLoss, { once: true })
      if (hold.signal.aborted) onLoss()

      const run = async (): Promise<void> => {
        const outcome = await settled(() => callback(new Lock(name, mode, hold)))
        // Its own requests come before its release: they are called back before the waiters of this
        // lock.
        await this.#unanswered.waitAtMost(this.#context.engine.env, LONGEST_WAIT_MS)
        // The lock ends with its lease, so a failed release must not hide the outcome of the
        // callback.
        const wasHeld = await hold.release().catch(() => true)
        if ('error' in outcome) reject(outcome.error)
        else if (!wasHeld) reject(lockLost(name, hold.lostBecause ?? lostUnnoticed(hold.resource)))
        else resolve(outcome.value)
      }
      void run()
    })
  }

  static {
    shapeAsInterface(LockManager, 'LockManager', ['request', 'query'])
  }
}

/**
 * The error that the specification requires. It does not cover failures of the store, which stay as
 * they are.
 */
function inWebTerms(error: unknown, signal: AbortSignal | undefined): unknown {
  if (!(error instanceof HoldfastError)) return error
  if (error.code === 'ABORTED') return signal?.reason
  return error.code === 'CLOSED' ? closedClient(error) : error
}
