import { checkSignal, listenToAbort } from '../../base/abort.js'
import type { Duration } from '../../base/duration.js'
import type { Cancel, Env } from '../../base/env.js'
import { HoldfastError, invalid } from '../../base/errors.js'
import { nothing } from '../../base/nothing.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import { ANSWER_MS, readWait } from '../limits.js'
import { runWith } from '../run.js'
import type { SessionBackend } from './backend.js'
import type { SessionBoundHold, SessionGrant } from './hold.js'
import type { LockWaiter } from './lock-queue.js'
import type { SessionConnection } from './session.js'
import { SessionLocks } from './session-locks.js'

/** The options of each call for a session lock or an advisory lock. */
export interface SessionLockOptions {
  /** How long to wait for the lock; 0 takes it only if it is free. No limit by default. */
  wait?: Duration | undefined
  /** Ends the wait with ABORTED when it aborts. No effect once the lock is held. */
  signal?: AbortSignal | undefined
}

const SESSION_LOCK_OPTIONS: OptionNames<SessionLockOptions> = { wait: true, signal: true }

/** How the session locks of a database are named, and what their holds are. */
export interface SessionLockKind<Name extends string | bigint, H extends SessionBoundHold<Name>> {
  /** The server's key of a name. Throws INVALID_ARGUMENT if there is none. */
  keyOf(name: Name): string
  createHold(name: Name, key: string, grant: SessionGrant): H
}

/** What callers do with the session locks of a pool. */
export class SessionLockCalls<
  Name extends string | bigint,
  H extends SessionBoundHold<Name>,
  C extends SessionConnection,
> {
  readonly #kind: SessionLockKind<Name, H>
  readonly #store: string
  readonly #env: Env
  readonly #locks: SessionLocks<C>

  constructor(kind: SessionLockKind<Name, H>, backend: SessionBackend<C>, env: Env) {
    this.#kind = kind
    this.#store = backend.store
    this.#env = env
    this.#locks = new SessionLocks(backend, env)
  }

  async acquire(name: Name, options: SessionLockOptions): Promise<H> {
    const { wait, signal } = checkOptions(options, SESSION_LOCK_OPTIONS, "{ wait: '5s' }")
    const waitMs = readWait(wait)
    const hold = await this.#wait(name, waitMs, checkSignal(signal))
    if (hold) return hold
    const message = `'${name}' could not be acquired within ${waitMs} ms; another session holds it`
    throw new HoldfastError('ACQUIRE_TIMEOUT', message, {
      resource: String(name),
      store: this.#store,
      retryable: true,
    })
  }

  async tryAcquire(name: Name): Promise<H | null> {
    return this.#wait(name, 0, undefined)
  }

  async run<T>(name: Name, work: (hold: H) => T | Promise<T>, options: SessionLockOptions): Promise<T> {
    if (typeof work !== 'function')
      throw invalid('run() takes a function as its second argument', String(name))
    const hold = await this.acquire(name, options)
    return runWith(hold, this.#store, async () => work(hold))
  }

  /** Resolves with null if another session held the lock until the end of the wait. */
  #wait(name: Name, waitMs: number, signal: AbortSignal | undefined): Promise<H | null> {
    const lock = { key: this.#kind.keyOf(name), name: String(name) }
    if (signal?.aborted) throw this.#aborted(name, signal)
    return new Promise((resolve, reject) => {
      let cancel: Cancel = nothing
      let unlisten = nothing
      const settle = (outcome: () => void): void => {
        cancel()
        unlisten()
        outcome()
      }
      const waiter: LockWaiter = {
        isBrief: waitMs === 0,
        grant: (fence, release) => {
          const hold = this.#kind.createHold(name, lock.key, { store: this.#store, fence, release })
          settle(() => resolve(hold))
          return hold
        },
        refuse: () => settle(() => resolve(null)),
        fail: (error) => settle(() => reject(error)),
      }
      if (signal)
        unlisten = listenToAbort(signal, () => {
          this.#locks.leave(lock, waiter)
          waiter.fail(this.#aborted(name, signal))
        })
      const onDeadline = (): void => void this.#locks.expire(lock, waiter)
      const limitMs = waitMs === 0 ? ANSWER_MS : waitMs
      if (limitMs < Infinity) cancel = this.#env.timer(limitMs, onDeadline, { keepAlive: true })
      this.#locks.join(lock, waiter)
    })
  }

  #aborted(name: Name, { reason }: AbortSignal): HoldfastError {
    const details = { resource: String(name), store: this.#store, cause: reason }
    return new HoldfastError('ABORTED', `Waiting for '${name}' was aborted`, details)
  }
}
