/// <reference lib="esnext.disposable" preserve="true" />
import { HoldfastError } from '../../../base/errors.js'

/**
 * A lock of a session. It has no lease: it lasts until it is released, or its connection ends.
 *
 * @example
 * ```ts
 * import { sessionLock } from 'holdfast/mysql'
 * import { createPool } from 'mysql2/promise'
 *
 * const pool = createPool('mysql://app:secret@localhost:3306/app')
 * const hold = await sessionLock(pool).acquire('nightly-report')
 * hold.signal.addEventListener('abort', () => console.log('the connection is gone, and the lock with it'))
 * console.log(hold.fence)
 * await hold.release()
 * await pool.end()
 * ```
 */
export class SessionHold implements AsyncDisposable {
  /** The name of what is held. */
  readonly resource: string
  /** Greater than that of every earlier hold of this name that Holdfast has given out. */
  readonly fence: number
  readonly #controller = new AbortController()
  readonly #free: () => Promise<boolean>
  #released: Promise<boolean> | undefined

  /** @internal */
  constructor(resource: string, fence: number, free: () => Promise<boolean>) {
    this.resource = resource
    this.fence = fence
    this.#free = free
  }

  /** Whether it is neither released nor known to be lost. */
  get isValid(): boolean {
    return !this.#released && !this.#controller.signal.aborted
  }

  /** Aborts when the hold is lost, with a HOLD_LOST error as its reason. A release does not abort it. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /**
   * Gives the lock back. Resolves with whether it was still held.
   *
   * @example
   * ```ts
   * import type { SessionHold } from 'holdfast/mysql'
   *
   * export async function done(hold: SessionHold) {
   *   if (!(await hold.release())) console.log('it had been lost')
   * }
   * ```
   */
  release(): Promise<boolean> {
    this.#released ??= this.#controller.signal.aborted ? Promise.resolve(false) : this.#free()
    return this.#released
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** @internal */
  lose(cause: unknown): void {
    if (this.#released) return
    const message = `The session lock '${this.resource}' is lost: its connection has ended`
    this.#controller.abort(
      new HoldfastError('HOLD_LOST', message, { resource: this.resource, store: 'mysql', cause }),
    )
  }
}
