import type { Env } from '../../base/env.js'
import type { HoldfastError } from '../../base/errors.js'
import { nothing } from '../../base/nothing.js'
import type { SessionBackend } from './backend.js'
import type { HomeSession } from './home-session.js'
import type { LockQueue } from './lock-queue.js'
import type { DatabaseSession, SessionConnection } from './session.js'

/** Longest wait in the server's queue: networks drop connections that are silent for minutes. */
const WAIT_MS = 60_000
/** The same while more locks are waited for than there are sessions. */
const CROWDED_WAIT_MS = 5000
/** At most this many sessions wait; with the home session at most half of the pool. */
const MOST_SESSIONS = 3
/** A server or client that ends waits sooner than this ends all of them: the lock is polled. */
const SHORTEST_WAIT_MS = 100
/** Pause after a session could not be opened. */
const REOPEN_MS = 1000

/** What becomes of a wait, and of the session it was made in. */
export interface WaitOutcomes<C extends SessionConnection> {
  /** Resolves with whether a waiter of this process took the lock. Never rejects. */
  onGrant(queue: LockQueue<C>, session: DatabaseSession<C>, fence: number): Promise<boolean>
  onFailure(queue: LockQueue<C>, error: unknown, session: DatabaseSession<C>): void
  onEnd(session: DatabaseSession<C>, reason: HoldfastError): void
  /** A session is free for other work. */
  onChange(): void
}

/** A session that waits for one lock, and then holds only that one. */
interface WaitingSession<C extends SessionConnection> {
  /** null while it is being opened. */
  session: DatabaseSession<C> | null
  /** The lock that it waits for or holds. */
  queue: LockQueue<C> | null
  /** A cancel of its wait: under way, or answered. */
  cancelling: Promise<void> | null
}

/** The sessions that wait for busy locks in the server's own queue. */
export class WaitingSessions<C extends SessionConnection> {
  readonly #backend: SessionBackend<C>
  readonly #env: Env
  readonly #home: HomeSession<C>
  readonly #outcomes: WaitOutcomes<C>
  readonly #all = new Set<WaitingSession<C>>()
  #reopenAt = 0

  constructor(backend: SessionBackend<C>, env: Env, home: HomeSession<C>, outcomes: WaitOutcomes<C>) {
    this.#backend = backend
    this.#env = env
    this.#home = home
    this.#outcomes = outcomes
  }

  /** How many sessions the pool has room for. */
  get limit(): number {
    const half = Math.floor(this.#backend.poolSize() / 2)
    return Math.max(0, Math.min(MOST_SESSIONS, half - 1))
  }

  /**
   * Gives idle sessions to the busy locks whose last wait was longest ago, opens one more if locks
   * are left over, and closes sessions that no lock needs. Locks without a session are polled.
   */
  assign(queues: readonly LockQueue<C>[]): void {
    const now = this.#env.now()
    const busy = queues.filter((queue) => queue.needsServerWait(now))
    const wanted = busy.filter((queue) => queue.isWanted).toSorted((a, b) => a.waitedAt - b.waitedAt)
    const all = [...this.#all]
    const { limit } = this
    const isCrowded = wanted.length > limit - all.filter(({ queue }) => queue).length
    for (const each of all) {
      const { session } = each
      if (!session || each.queue) continue
      const queue = wanted.shift()
      if (queue) void this.#wait(each, session, queue, isCrowded)
      else if (busy.every((needed) => all.some((other) => other.queue === needed))) this.#close(each, session)
    }
    const isOpening = all.some(({ session }) => session === null)
    const mayOpen = !isOpening && all.length < limit && this.#reopenAt <= now
    if (wanted[0] && mayOpen) void this.#open(wanted[0])
  }

  /** Cancels waits for locks that no caller of this process wants any more. */
  cancelUnwanted(): void {
    for (const each of this.#all) {
      const { session, queue } = each
      if (!session || queue?.request !== 'wait' || queue.waiters.length > 0 || each.cancelling) continue
      each.cancelling = this.#home
        .open()
        .then((home) => this.#backend.cancel(session, queue, home))
        // Without a cancel the wait ends by itself, and a grant is released.
        .catch(nothing)
    }
  }

  /** The session has released its lock. */
  free(session: DatabaseSession<C>): void {
    for (const each of this.#all) if (each.session === session) each.queue = null
  }

  /** Never rejects. */
  async #wait(
    each: WaitingSession<C>,
    session: DatabaseSession<C>,
    queue: LockQueue<C>,
    isCrowded: boolean,
  ): Promise<void> {
    each.queue = queue
    each.cancelling = null
    queue.request = 'wait'
    let isHeld = false
    const since = this.#env.now()
    try {
      const fence = await this.#backend.wait(session, queue, isCrowded ? CROWDED_WAIT_MS : WAIT_MS)
      // A late cancel must not hit the next statement of this session.
      await each.cancelling
      queue.failure = null
      if (fence === null) this.#onNoGrant(queue, since, each.cancelling !== null)
      else isHeld = await this.#outcomes.onGrant(queue, session, fence)
    } catch (error) {
      await each.cancelling
      if (!each.cancelling) this.#outcomes.onFailure(queue, error, session)
    }
    if (!isHeld) each.queue = null
    queue.request = null
    queue.waitedAt = this.#env.now()
    this.#outcomes.onChange()
  }

  /** The lock is waited for again, or polled if that would be a loop without a pause. */
  #onNoGrant(queue: LockQueue<C>, since: number, isCancelled: boolean): void {
    const now = this.#env.now()
    const isTooShort = !isCancelled && now - since < SHORTEST_WAIT_MS
    queue.busyAt = isTooShort ? -Infinity : now
    if (isTooShort) queue.pollLater(this.#env)
  }

  async #open(queue: LockQueue<C>): Promise<void> {
    const opened: WaitingSession<C> = { session: null, queue: null, cancelling: null }
    // An idle connection of the pool is open before the first poll.
    if (queue.pollAt <= this.#env.now()) queue.pollLater(this.#env)
    this.#all.add(opened)
    try {
      const opening = this.#backend.open((reason) => {
        this.#all.delete(opened)
        void opening.then((session) => this.#outcomes.onEnd(session, reason))
      })
      opened.session = await opening
    } catch {
      // The locks are polled meanwhile, and the poll reports the failure.
      this.#all.delete(opened)
      this.#reopenAt = this.#env.now() + REOPEN_MS
    }
    this.#outcomes.onChange()
  }

  #close(each: WaitingSession<C>, session: DatabaseSession<C>): void {
    this.#all.delete(each)
    session.close()
  }
}
