import { type Duration, toMs } from '../../../base/duration.js'
import { type Cancel, type Env, systemEnv } from '../../../base/env.js'
import { HoldfastError } from '../../../base/errors.js'
import { checkOptions, type OptionNames } from '../../../base/options.js'
import type { Waiter } from '../../../drivers/session-locks/line.js'
import { SessionLocks } from '../../../drivers/session-locks/locks.js'
import type { Driver } from '../driver.js'
import type { PgPool } from '../pg.js'
import { AdvisoryHold } from './hold.js'
import { keyOf } from './key.js'
import { AdvisoryServer } from './server.js'
import type { Session } from './session.js'

export interface AdvisoryOptions {
  /** How long to wait for the lock. For ever unless told. */
  wait?: Duration | undefined
  /** Gives up when it aborts. */
  signal?: AbortSignal | undefined
}

const ADVISORY_OPTIONS: OptionNames<AdvisoryOptions> = { wait: true, signal: true }

/** The advisory locks of one process on one pool. Made by `advisory`. */
export class AdvisoryLocks {
  readonly #env: Env = systemEnv
  readonly #locks: SessionLocks<Session>

  /** @internal */
  constructor(pool: PgPool, driver: Driver, schema: string) {
    this.#locks = new SessionLocks(new AdvisoryServer(pool, driver, schema, this.#env), this.#env)
  }

  /**
   * Takes the lock of a name, or of a key of your own, and waits for it if need be.
   *
   * @example
   * ```ts
   * import { advisory } from 'holdfast/postgres'
   * import pg from 'pg'
   *
   * const hold = await advisory(new pg.Pool()).acquire('nightly-report', { wait: '5s' })
   * console.log('my fence is', hold.fence)
   * await hold.release()
   * ```
   */
  async acquire(name: string | bigint, options: AdvisoryOptions = {}): Promise<AdvisoryHold> {
    const { wait = Infinity, signal } = checkOptions(options, ADVISORY_OPTIONS, "{ wait: '5s' }")
    const waitMs = wait === Infinity ? Infinity : toMs(wait, { name: 'wait', minMs: 0 })
    const hold = await this.#enter(name, waitMs, signal)
    if (hold) return hold
    const message = `The advisory lock '${name}' was not to be had within ${waitMs} ms; somebody else has it`
    throw new HoldfastError('ACQUIRE_TIMEOUT', message, { resource: String(name), store: 'postgres' })
  }

  /**
   * Takes the lock if it is free; null if it is not.
   *
   * @example
   * ```ts
   * import { advisory } from 'holdfast/postgres'
   * import pg from 'pg'
   *
   * const hold = await advisory(new pg.Pool()).tryAcquire(42n)
   * if (hold === null) console.log('somebody else is at it')
   * ```
   */
  async tryAcquire(name: string | bigint): Promise<AdvisoryHold | null> {
    return this.#enter(name, 0, undefined)
  }

  /**
   * Runs work with the lock, and gives it back. If the lock was lost before the work was done, rejects with HOLD_LOST; an error of the work itself wins.
   *
   * @example
   * ```ts
   * import { advisory } from 'holdfast/postgres'
   * import pg from 'pg'
   *
   * await advisory(new pg.Pool()).run('nightly-report', async ({ signal }) => {
   *   await fetch('https://example.com/report', { signal })
   * })
   * ```
   */
  async run<T>(
    name: string | bigint,
    work: (hold: AdvisoryHold) => T | Promise<T>,
    options: AdvisoryOptions = {},
  ): Promise<T> {
    const hold = await this.acquire(name, options)
    try {
      const result = await work(hold)
      if (hold.signal.aborted) throw hold.signal.reason
      return result
    } finally {
      await hold.release()
    }
  }

  /** null: not to be had in that time. */
  #enter(
    name: string | bigint,
    waitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<AdvisoryHold | null> {
    const lock = { key: keyOf(name), name: String(name) }
    if (signal?.aborted) throw aborted(name, signal)
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
          const hold = new AdvisoryHold(name, lock.key, fence, free)
          resolve(hold)
          return hold
        },
        refuse: () => {
          end()
          resolve(null)
        },
        fail: (error) => {
          end()
          reject(error)
        },
      }
      const onLate = (): void => void this.#locks.giveUp(lock, waiter)
      const onAbort = (): void => {
        this.#locks.leave(lock, waiter)
        if (signal) waiter.fail(aborted(name, signal))
      }
      signal?.addEventListener('abort', onAbort)
      if (waitMs > 0 && waitMs < Infinity) cancel = this.#env.timer(waitMs, onLate, { keepAlive: true })
      this.#locks.join(lock, waiter)
    })
  }
}

function aborted(name: string | bigint, { reason }: AbortSignal): HoldfastError {
  const message = `Waiting for the advisory lock '${name}' was aborted`
  return new HoldfastError('ABORTED', message, { resource: String(name), store: 'postgres', cause: reason })
}
