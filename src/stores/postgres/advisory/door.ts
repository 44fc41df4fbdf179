import { backoffMs } from '../../../base/backoff.js'
import type { Env } from '../../../base/env.js'
import type { AdvisoryHold } from './hold.js'

/** Somebody who wants in. Ends, by whichever comes first, out of the line. */
export interface Waiter {
  /** Takes the lock only if it is free now. */
  readonly isBrief: boolean
  /** Has the lock, with this fence. */
  enter(fence: number): AdvisoryHold
  /** Is not to have it in time. */
  leave(): void
  fail(error: unknown): void
}

const FIRST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 250

/**
 * One key in this process. The server would let the same session in again and again, so who is inside is decided here: one at a time, in the order
 * of arrival.
 */
export class Door {
  readonly key: string
  readonly waiters: Waiter[] = []
  hold: AdvisoryHold | null = null
  /** When the server is to be asked next. */
  dueAt = 0
  /** Since when asking fails, and how; null: it does not. */
  failure: { readonly since: number; readonly error: Error } | null = null
  #attempts = 0

  constructor(key: string) {
    this.key = key
  }

  get isWanted(): boolean {
    return this.hold === null && this.waiters.length > 0
  }

  get isDeserted(): boolean {
    return this.hold === null && this.waiters.length === 0
  }

  /** The next question comes later and later, and at another moment than those of other processes. */
  postpone(env: Env): void {
    this.dueAt = env.now() + backoffMs(++this.#attempts, env.random(), FIRST_PAUSE_MS, LONGEST_PAUSE_MS)
  }

  /** Nobody of this process is inside any more. Others get a moment to come in before its next one. */
  open(env: Env): void {
    this.hold = null
    this.#attempts = 0
    this.postpone(env)
  }
}
