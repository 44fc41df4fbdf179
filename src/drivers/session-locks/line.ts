import { backoffMs } from '../../base/backoff.js'
import type { Env } from '../../base/env.js'
import type { HoldfastError } from '../../base/errors.js'
import type { Lock, LockSession } from './server.js'

/** A request of this process. Whichever of these is called first ends it. */
export interface Waiter {
  /** Takes the lock only if it is free now. */
  readonly isBrief: boolean
  /** It has the lock. `free` gives it back and says whether it was still held. The answer is told of a loss. */
  enter(fence: number, free: () => Promise<boolean>): Hold
  /** Another session has the lock. */
  refuse(): void
  fail(error: HoldfastError): void
}

/** A hold as the caller has it. */
interface Hold {
  lose(reason: Error): void
}

/** A lock that one of our sessions has. */
export interface Held<S extends LockSession> {
  readonly session: S
  readonly hold: Hold
}

const FIRST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 250
/** What was taken so lately is waited for in the server's queue without asking whether it is free. */
const BUSY_MS = 1000

/**
 * One lock in this process. The server would let the same session in again and again, so who is inside is decided here: one at a time, in the
 * order of arrival.
 */
export class Line<S extends LockSession> implements Lock {
  readonly key: string
  readonly name: string
  readonly waiters: Waiter[] = []
  held: Held<S> | null = null
  /** A question for it, or a wait in the server's queue, is under way. */
  isAsked = false
  /** When another session was last known to have it. */
  busyAt: number
  /** When it is to be asked for next. */
  dueAt = 0
  /** When it was last in the server's queue. */
  queuedAt = 0
  /** Since when asking fails, and how; null: it does not. */
  failure: { readonly since: number; readonly error: HoldfastError } | null = null
  #attempts = 0

  constructor({ key, name }: Lock, busyAt: number) {
    this.key = key
    this.name = name
    this.busyAt = busyAt
  }

  get isWanted(): boolean {
    return this.held === null && !this.isAsked && this.waiters.length > 0
  }

  get isDeserted(): boolean {
    return this.held === null && !this.isAsked && this.waiters.length === 0
  }

  /** Whether to wait for it in the server's queue, now or after what is under way. */
  mayQueue(now: number): boolean {
    const isWaitedFor = this.waiters.length > 0 && !this.waiters[0]?.isBrief
    return this.held === null && isWaitedFor && now - this.busyAt < BUSY_MS
  }

  /** Another session has it. */
  refuse(env: Env): void {
    this.busyAt = env.now()
    this.postpone(env)
    for (const waiter of this.waiters.filter(({ isBrief }) => isBrief)) {
      this.remove(waiter)
      waiter.refuse()
    }
  }

  /** The next question comes later and later, and at another moment than those of other processes. */
  postpone(env: Env): void {
    this.dueAt = env.now() + backoffMs(++this.#attempts, env.random(), FIRST_PAUSE_MS, LONGEST_PAUSE_MS)
  }

  /** No session of ours has it any more. */
  open(): void {
    this.held = null
    this.#attempts = 0
    this.dueAt = 0
  }

  remove(waiter: Waiter): void {
    const place = this.waiters.indexOf(waiter)
    if (place >= 0) this.waiters.splice(place, 1)
  }
}
