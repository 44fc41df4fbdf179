import { aborted } from '../../base/abort.js'
import { type Env, systemEnv } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'
import type { LockTransaction, TransactionBackend } from './backend.js'
import { TransactionFrame } from './frame.js'
import { readRequest, type TransactionLockOptions, type TransactionLockRequest } from './options.js'
import { TransactionStart } from './start.js'

/**
 * A lock that is a row lock of the caller's own transaction: work and release commit together, and
 * the server releases it when the client dies. Made by `transactionLock`.
 */
export class TransactionLock<Tx> {
  readonly #backend: TransactionBackend
  readonly #env: Env

  /** @internal */
  constructor(backend: TransactionBackend, env: Env = systemEnv) {
    this.#backend = backend
    this.#env = env
  }

  /**
   * Runs work in a transaction that holds the lock, and commits; rolls back if the work fails.
   * Nested runs belong to the same transaction: the same name is entered again, another name is
   * locked as well, and a nested run that fails rolls back only its own part.
   *
   * @example
   * ```ts
   * import { transactionLock } from 'holdfast/postgres'
   * import pg from 'pg'
   *
   * const pool = new pg.Pool({ connectionString: 'postgres://localhost/app' })
   * await transactionLock(pool).run('stock:7', async (tx) => {
   *   await tx.query('UPDATE stock SET pieces = pieces - 1 WHERE id = $1', [7])
   * })
   * ```
   *
   * @example
   * ```ts
   * import { transactionLock } from 'holdfast/mysql'
   * import { createPool } from 'mysql2/promise'
   *
   * const pool = createPool('mysql://app:secret@localhost:3306/app')
   * await transactionLock(pool).run('stock:7', async (tx) => {
   *   await tx.query('UPDATE stock SET pieces = pieces - 1 WHERE id = ?', [7])
   * })
   * ```
   */
  async run<T>(
    name: string,
    work: (tx: Tx) => T | Promise<T>,
    options: TransactionLockOptions = {},
  ): Promise<T> {
    const request = readRequest(name, options)
    if (request.signal?.aborted) throw aborted(name, request.signal)
    const typedWork = work as (client: unknown) => T | Promise<T>
    const around = TransactionFrame.around(this)
    if (around) return around.nested(name, (inner) => this.#lockNested(inner, request), typedWork)
    const start = new TransactionStart(request, this.#backend.store, this.#env)
    return start.outcome(this.#runOutermost(request, start, typedWork))
  }

  async #runOutermost<T>(
    { name, waitMs, signal, isolation }: TransactionLockRequest,
    start: TransactionStart,
    work: (client: unknown) => T | Promise<T>,
  ): Promise<T> {
    // Read now: a driver may call back in another async context.
    const outer = TransactionFrame.around()
    for (let isRepaired = false; ; ) {
      try {
        start.connecting()
        await this.#backend.ensureSchema()
        return await this.#backend.run(isolation, async (transaction) => {
          start.connected()
          await transaction.lock(name, { deadline: start.deadline, signal })
          start.locked()
          return new TransactionFrame(this, transaction, [name], outer).run(work)
        })
      } catch (error) {
        if (start.isLocked) throw error
        const failure = this.#backend.failureOf(error)
        if (failure === 'schema missing' && !isRepaired) {
          isRepaired = true
          this.#backend.forgetSchema()
        } else if (failure !== 'rolled back') throw this.#refusal(name, waitMs, error)
      }
    }
  }

  async #lockNested(inner: LockTransaction, { name, waitMs, signal }: TransactionLockRequest): Promise<void> {
    try {
      await inner.lock(name, { deadline: this.#env.now() + waitMs, signal })
    } catch (error) {
      throw this.#refusal(name, waitMs, error)
    }
  }

  #refusal(resource: string, waitMs: number, error: unknown): HoldfastError {
    const { store } = this.#backend
    if (this.#backend.failureOf(error) !== 'busy') return this.#backend.explain(error, resource)
    const message = `'${resource}' could not be acquired within ${waitMs} ms; another transaction holds it`
    return new HoldfastError('ACQUIRE_TIMEOUT', message, { resource, store, retryable: true })
  }
}
