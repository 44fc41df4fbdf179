import { type Duration, toMs } from '../../../base/duration.js'
import { type Cancel, systemEnv } from '../../../base/env.js'
import { HoldfastError, invalid } from '../../../base/errors.js'
import { checkName } from '../../../base/names.js'
import { checkOptions, type OptionNames } from '../../../base/options.js'
import type { Waiter } from '../../../drivers/session-locks/line.js'
import type { SessionLocks } from '../../../drivers/session-locks/locks.js'
import { SessionHold } from './hold.js'
import { sessionLockName } from './names.js'
import type { Session } from './session.js'

export interface SessionLockOptions {
  /** How long to wait for the lock; 0 takes it only if it is free. For ever unless told. */
  wait?: Duration | undefined
  /** Ends the wait. */
  signal?: AbortSignal | undefined
}

const SESSION_LOCK_OPTIONS: OptionNames<SessionLockOptions> = { wait: true, signal: true }

/** Locks of GET_LOCK, on connections of a pool. Made by `sessionLock`. */
export class SessionLock {
  readonly #locks: SessionLocks<Session>

  /** @internal */
  constructor(locks: SessionLocks<Session>) {
    this.#locks = locks
  }

  /**
   * Waits for the lock and gives the hold out. Throws ACQUIRE_TIMEOUT when the wait is over, ABORTED when the signal aborts.
   *
   * @example
   * ```ts
   * import { sessionLock } from 'holdfast/mysql'
   * import { createPool } from 'mysql2/promise'
   *
   * const pool = createPool('mysql://app:secret@localhost:3306/app')
   * await using hold = await sessionLock(pool).acquire('nightly-report', { wait: '5s' })
   * console.log(hold.fence)
   * ```
   */
  async acquire(name: string, options: SessionLockOptions = {}): Promise<SessionHold> {
    checkName(name, 'The name of a lock')
    const { wait = Infinity, signal } = checkOptions(options, SESSION_LOCK_OPTIONS, "{ wait: '5s' }")
    const waitMs = wait === Infinity ? Infinity : toMs(wait, { name: 'wait', minMs: 0 })
    if (signal?.aborted) throw aborted(name, signal)
    const lock = { key: sessionLockName(name), name }
    return new Promise((resolve, reject) => {
      let cancel: Cancel = () => {}
      const end = (): void => {
        cancel()
        signal?.removeEventListener('abort', onAbort)
      }
      const waiter: Waiter = {
        isBrief: waitMs === 0,
        enter: (fence, free) => {
          end()
          const hold = new SessionHold(name, fence, free)
          resolve(hold)
          return hold
        },
        refuse: () => waiter.fail(busy(name, waitMs)),
        fail: (error) => {
          end()
          reject(error)
        },
      }
      const onLate = (): void => void this.#locks.giveUp(lock, waiter)
      const onAbort = (): void => {
        this.#locks.leave(lock, waiter)
        waiter.fail(aborted(name, signal))
      }
      signal?.addEventListener('abort', onAbort)
      if (waitMs > 0 && waitMs < Infinity) cancel = systemEnv.timer(waitMs, onLate, { keepAlive: true })
      this.#locks.join(lock, waiter)
    })
  }

  /**
   * Takes the lock if it is free; resolves with null if it is not.
   *
   * @example
   * ```ts
   * import { sessionLock } from 'holdfast/mysql'
   * import { createPool } from 'mysql2/promise'
   *
   * const pool = createPool('mysql://app:secret@localhost:3306/app')
   * const hold = await sessionLock(pool).tryAcquire('nightly-report')
   * if (!hold) console.log('somebody else is at it')
   * ```
   */
  async tryAcquire(name: string): Promise<SessionHold | null> {
    try {
      return await this.acquire(name, { wait: 0 })
    } catch (error) {
      if (error instanceof HoldfastError && error.code === 'ACQUIRE_TIMEOUT') return null
      throw error
    }
  }

  /**
   * Runs work under the lock and gives it back. Rejects with HOLD_LOST if the lock was lost before the work was done; the hold's signal tells of that at once.
   *
   * @example
   * ```ts
   * import { sessionLock } from 'holdfast/mysql'
   * import { createPool } from 'mysql2/promise'
   *
   * const pool = createPool('mysql://app:secret@localhost:3306/app')
   * await sessionLock(pool).run('nightly-report', async (hold) => {
   *   console.log('one in the whole fleet, with fence', hold.fence)
   * })
   * ```
   */
  async run<T>(
    name: string,
    work: (hold: SessionHold) => T | Promise<T>,
    options: SessionLockOptions = {},
  ): Promise<T> {
    if (typeof work !== 'function') throw invalid('run() takes a function as its second argument', name)
    const hold = await this.acquire(name, options)
    try {
      const result = await work(hold)
      hold.signal.throwIfAborted()
      return result
    } finally {
      await hold.release()
    }
  }
}

function busy(resource: string, waitMs: number): HoldfastError {
  const message = `'${resource}' was not to be had within ${waitMs} ms; another session has it`
  return new HoldfastError('ACQUIRE_TIMEOUT', message, { resource, store: 'mysql' })
}

function aborted(resource: string, signal: AbortSignal | undefined): HoldfastError {
  const message = `The wait for '${resource}' was aborted`
  return new HoldfastError('ABORTED', message, { resource, store: 'mysql', cause: signal?.reason })
}
