import type { PeerCalls } from '../calls.js'
import { RedissonOwner } from './owner.js'
import { WakeUps } from './wake-ups.js'

/** A waiter that hears messages looks again after this time, in case one got lost. */
const CHECK_MS = 5000
/** A waiter that does not hear them asks this often. */
const POLL_MS = 100

/** What one `redissonLock` looks like to Redisson: a client with many threads. */
export class RedissonClient {
  readonly calls: PeerCalls
  readonly wakeUps: WakeUps
  readonly leaseMs: number
  /** How long a place in a fair line is kept, as Redisson's `fairLockWaitTimeout`. */
  readonly fairWaitMs: number
  readonly #id: string
  #threads = 0

  constructor(calls: PeerCalls, leaseMs: number, fairWaitMs: number) {
    this.calls = calls
    this.wakeUps = new WakeUps(calls)
    this.leaseMs = leaseMs
    this.fairWaitMs = fairWaitMs
    this.#id = calls.env.id()
  }

  createOwner(): RedissonOwner {
    return new RedissonOwner(`${this.#id}:${++this.#threads}`)
  }

  /** When to look again. `pttl`: what is left of the lease of the holder, or negative. */
  retryMs(pttl: number): number {
    const { env } = this.calls
    // Nobody holds it, but a waiter that may be dead is ahead in line.
    const isUnheld = pttl === -2
    if (isUnheld || !this.wakeUps.isActive) return POLL_MS * (0.5 + env.random())
    return pttl < 0 ? CHECK_MS : Math.min(CHECK_MS, pttl + 1)
  }
}
