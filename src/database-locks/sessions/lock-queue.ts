import { backoffMs } from '../../base/backoff.js'
import type { Env } from '../../base/env.js'
import type { HoldfastError } from '../../base/errors.js'
import type { SessionLockId } from './backend.js'
import type { DatabaseSession, SessionConnection } from './session.js'

/** A caller that waits for a lock. The first of the three calls ends the wait. */
export interface LockWaiter {
  /** Takes the lock only if it is free now. */
  readonly isBrief: boolean
  /** It has the lock. `release` resolves with whether the lock was still held. */
  grant(fence: number, release: () => Promise<boolean>): Revocable
  /** Another session holds the lock. */
  refuse(): void
  fail(error: HoldfastError): void
}

/** A hold that can be lost with its session. */
interface Revocable {
  lose(reason: Error): void
}

/** A lock that one of our sessions holds. */
export interface SessionHolder<C extends SessionConnection> {
  readonly session: DatabaseSession<C>
  readonly hold: Revocable
}

const FIRST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 250
/** A lock that was busy this recently is waited for in the server without a poll before. */
const BUSY_MS = 1000

/**
 * The holder and the waiters of one lock in this process. The server grants a lock to the session
 * that holds it again and again, so the process itself admits its tasks: one at a time, in order.
 */
export class LockQueue<C extends SessionConnection> implements SessionLockId {
  readonly key: string
  readonly name: string
  readonly waiters: LockWaiter[] = []
  holder: SessionHolder<C> | null = null
  /** What is under way: a poll by the home session, or a wait in the server. */
  request: 'poll' | 'wait' | null = null
  /** When another session was last known to hold it. */
  busyAt: number
  /** When to ask for it next. */
  pollAt = 0
  /** When its last wait in the server ended. */
  waitedAt = 0
  /** Since when requests fail, and why; null: the last one succeeded. */
  failure: { readonly since: number; readonly error: HoldfastError } | null = null
  #attempts = 0

  constructor({ key, name }: SessionLockId, busyAt: number) {
    this.key = key
    this.name = name
    this.busyAt = busyAt
  }

  get isWanted(): boolean {
    return this.holder === null && this.request === null && this.waiters.length > 0
  }

  get isUnused(): boolean {
    return this.holder === null && this.request === null && this.waiters.length === 0
  }

  /** Whether a brief waiter may learn from the next poll that it is free. */
  get admitsBrief(): boolean {
    return this.holder === null && this.request !== 'wait' && this.waiters.length === 0
  }

  /** Whether a session should wait for it in the server, now or after the request under way. */
  needsServerWait(now: number): boolean {
    const hasPatientWaiter = this.waiters.length > 0 && !this.waiters[0]?.isBrief
    return this.holder === null && hasPatientWaiter && now - this.busyAt < BUSY_MS
  }

  /** Another session holds it. */
  markBusy(env: Env): void {
    this.busyAt = env.now()
    this.pollLater(env)
    for (const waiter of this.waiters.filter(({ isBrief }) => isBrief)) {
      this.remove(waiter)
      waiter.refuse()
    }
  }

  /** The pauses grow, and are random so that processes do not poll at the same moment. */
  pollLater(env: Env): void {
    this.pollAt = env.now() + backoffMs(++this.#attempts, env.random(), FIRST_PAUSE_MS, LONGEST_PAUSE_MS)
  }

  /** No session of ours holds it any more. */
  markReleased(): void {
    this.holder = null
    this.#attempts = 0
    this.pollAt = 0
  }

  remove(waiter: LockWaiter): void {
    const index = this.waiters.indexOf(waiter)
    if (index >= 0) this.waiters.splice(index, 1)
  }
}
