import type { Cancel, Env } from '../../base/env.js'
import type { HoldfastError } from '../../base/errors.js'
import { nothing } from '../../base/nothing.js'
import { ANSWER_MS, noConnection } from '../limits.js'
import type { SessionBackend, SessionLockId } from './backend.js'
import { HomeSession } from './home-session.js'
import { LockQueue, type LockWaiter, type SessionHolder } from './lock-queue.js'
import type { DatabaseSession, SessionConnection } from './session.js'
import { WaitingSessions } from './waiting-sessions.js'

/** Transient failures are retried for this time before patient waiters are told. */
const RETRY_MS = 10_000
/** The most unused locks whose last busy time is remembered. */
const MOST_REMEMBERED = 100

/**
 * All session locks of one pool. The home session takes free locks. Busy ones are waited for in the
 * server's queue by sessions that hold nothing else, or polled if the pool has no such session.
 */
export class SessionLocks<C extends SessionConnection> {
  readonly #backend: SessionBackend<C>
  readonly #env: Env
  readonly #home: HomeSession<C>
  readonly #waiting: WaitingSessions<C>
  readonly #queues = new Map<string, LockQueue<C>>()
  /** When locks that are unused now were last found busy. */
  readonly #busyAt = new Map<string, number>()
  #isTrying = false
  #cancelPoll: Cancel = nothing

  constructor(backend: SessionBackend<C>, env: Env) {
    this.#backend = backend
    this.#env = env
    this.#home = new HomeSession(backend, env, (session, reason) => this.#onEnd(session, reason))
    this.#waiting = new WaitingSessions(backend, env, this.#home, {
      onGrant: (queue, session, fence) => this.#grant(queue, session, fence),
      onFailure: (queue, error, session) => this.#fail(queue, error, session),
      onEnd: (session, reason) => this.#onEnd(session, reason),
      onChange: () => this.#update(),
    })
  }

  join(lock: SessionLockId, waiter: LockWaiter): void {
    const queue =
      this.#queues.get(lock.key) ?? new LockQueue<C>(lock, this.#busyAt.get(lock.key) ?? -Infinity)
    if (waiter.isBrief && !queue.admitsBrief) return waiter.refuse()
    this.#queues.set(lock.key, queue)
    queue.waiters.push(waiter)
    this.#update()
  }

  leave({ key }: SessionLockId, waiter: LockWaiter): void {
    this.#queues.get(key)?.remove(waiter)
    this.#update()
  }

  /**
   * Ends a wait at its deadline. The waiter is refused only if the server answers, or this process
   * holds the lock.
   */
  async expire({ key }: SessionLockId, waiter: LockWaiter): Promise<void> {
    const queue = this.#queues.get(key)
    // A question that was sent is answered, or its session ends.
    if (waiter.isBrief && this.#home.isOpen) return
    queue?.remove(waiter)
    const known = waiter.isBrief ? noConnection(this.#backend.store, ANSWER_MS) : queue?.failure?.error
    const checking = known || queue?.holder ? undefined : this.#home.check()
    // Cancels the wait in the server, if need be, before the check is answered.
    this.#update()
    const failure = known ?? (await checking)
    this.#update()
    if (failure) waiter.fail(failure)
    else waiter.refuse()
  }

  /** Decides after every change which locks to wait for, to poll now, or to poll later. */
  #update(): void {
    this.#cancelPoll()
    for (const queue of this.#queues.values()) if (queue.isUnused) this.#forget(queue)
    this.#waiting.cancelUnwanted()
    const queues = [...this.#queues.values()]
    this.#waiting.assign(queues)
    if (queues.length === 0) return this.#home.isBeingChecked ? undefined : this.#home.close()
    if (!this.#isTrying) this.#poll(queues.filter((queue) => queue.isWanted))
  }

  #forget({ key, busyAt }: LockQueue<C>): void {
    this.#queues.delete(key)
    this.#busyAt.delete(key)
    if (busyAt === -Infinity) return
    this.#busyAt.set(key, busyAt)
    const [oldest] = this.#busyAt.keys()
    if (this.#busyAt.size > MOST_REMEMBERED && oldest !== undefined) this.#busyAt.delete(oldest)
  }

  #poll(wanted: readonly LockQueue<C>[]): void {
    if (wanted.length === 0) return
    const now = this.#env.now()
    const due = wanted.filter((queue) => queue.pollAt <= now)
    if (due.length > 0) return void this.#tryAll(due)
    const pollAt = Math.min(...wanted.map((queue) => queue.pollAt))
    this.#cancelPoll = this.#env.timer(pollAt - now, () => this.#update(), { keepAlive: true })
  }

  /** Never rejects. */
  async #tryAll(due: readonly LockQueue<C>[]): Promise<void> {
    this.#isTrying = true
    let home: DatabaseSession<C> | undefined
    for (const queue of due) queue.request = 'poll'
    try {
      home = await this.#home.open()
      const fences = await this.#backend.tryAll(home, due)
      for (const queue of due) {
        const fence = fences.get(queue.key)
        queue.failure = null
        if (fence === undefined) queue.markBusy(this.#env)
        else await this.#grant(queue, home, fence)
      }
    } catch (error) {
      for (const queue of due) this.#fail(queue, error, home)
    }
    for (const queue of due) queue.request = null
    this.#isTrying = false
    this.#update()
  }

  /** Grants to the first waiter, or releases the lock if there is none. Never rejects. */
  async #grant(queue: LockQueue<C>, session: DatabaseSession<C>, fence: number): Promise<boolean> {
    // The lock was lost before a waiter learned of it.
    if (session.hasEnded) return false
    const waiter = queue.waiters.shift()
    if (!waiter) {
      await this.#unlock(session, queue)
      return false
    }
    const release = (): Promise<boolean> => this.#release(queue, holder)
    const holder: SessionHolder<C> = { session, hold: waiter.grant(fence, release) }
    queue.holder = holder
    return true
  }

  async #release(queue: LockQueue<C>, holder: SessionHolder<C>): Promise<boolean> {
    if (queue.holder !== holder) return false
    const wasHeld = await this.#unlock(holder.session, queue)
    this.#waiting.free(holder.session)
    // After a loss the next waiter may hold it by now.
    if (queue.holder === holder) this.#markReleased(queue)
    this.#update()
    return wasHeld
  }

  /** Destroys a session that may still hold the lock: the pool must not get it back. */
  async #unlock(session: DatabaseSession<C>, queue: LockQueue<C>): Promise<boolean> {
    try {
      return await this.#backend.unlock(session, queue.key)
    } catch (error) {
      session.destroy(this.#backend.explain(error))
      return false
    }
  }

  /** Where all processes poll, others get a chance before our next waiter. */
  #markReleased(queue: LockQueue<C>): void {
    queue.markReleased()
    if (this.#waiting.limit === 0) queue.pollLater(this.#env)
  }

  #fail(queue: LockQueue<C>, cause: unknown, session: DatabaseSession<C> | undefined): void {
    const now = this.#env.now()
    const since = queue.failure?.since ?? now
    const error = this.#backend.explain(cause)
    const isRetried = this.#backend.isTransient(cause, session) && now - since < RETRY_MS
    queue.failure = isRetried ? { since, error } : null
    queue.busyAt = -Infinity
    queue.pollLater(this.#env)
    for (const waiter of [...queue.waiters]) {
      if (isRetried && !waiter.isBrief) continue
      queue.remove(waiter)
      waiter.fail(error)
    }
  }

  /** All locks of a session are lost with it. */
  #onEnd(session: DatabaseSession<C>, reason: HoldfastError): void {
    for (const queue of this.#queues.values()) {
      const { holder } = queue
      if (holder?.session !== session) continue
      this.#markReleased(queue)
      holder.hold.lose(reason)
    }
    this.#update()
  }
}
