import { AsyncLocalStorage } from 'node:async_hooks'
import { aborted, checkSignal, unlessAborted } from '../../../base/abort.js'
import { type Duration, toMs } from '../../../base/duration.js'
import { systemEnv } from '../../../base/env.js'
import { HoldfastError, invalid } from '../../../base/errors.js'
import { checkName } from '../../../base/names.js'
import { checkOptions, type OptionNames } from '../../../base/options.js'
import type { Driver } from '../driver.js'
import { explain, isDeadlock, isSchemaMissing } from '../failures.js'
import { Runner } from '../runner.js'
import type { Names } from '../sql/names.js'
import { Busy, Transaction } from './transaction.js'

export interface TransactionLockOptions {
  /** How long to wait for the lock; 0 takes it only if it is free. For ever unless told. */
  wait?: Duration | undefined
  /** Gives up waiting when aborted, with ABORTED. No effect once the lock is held. The connection is free again within a second. */
  signal?: AbortSignal | undefined
  /** The isolation of the transaction; the connection's own unless told. Inside another run it is that one's. */
  isolation?: 'read committed' | 'repeatable read' | 'serializable' | undefined
}

const TRANSACTION_LOCK_OPTIONS: OptionNames<TransactionLockOptions> = {
  wait: true,
  signal: true,
  isolation: true,
}
const ISOLATIONS = ['read committed', 'repeatable read', 'serializable']

/** What the callback of a run belongs to. */
interface Frame {
  readonly lock: TransactionLock<never>
  readonly transaction: Transaction
  /** All names that the transaction has locked: what a savepoint undoes stays locked until the end. */
  readonly names: Set<string>
  readonly depth: number
  isOpen: boolean
  /** Nested runs take turns: they share one connection, and savepoints are a stack. */
  last: Promise<unknown>
}

const frames = new AsyncLocalStorage<Frame>()

interface Patience {
  readonly waitMs: number
  readonly signal: AbortSignal | undefined
}

/** The transaction had not got the lock when it failed, so nothing of the caller's work was done. */
class NotLocked extends Error {}

/**
 * A lock that is the row lock of the caller's own transaction: work and release commit together, and the server frees it when the client dies.
 * Made by `transactionLock`.
 */
export class TransactionLock<Tx> {
  readonly #driver: Driver
  readonly #runner: Runner
  readonly #table: string
  #isReady = false

  /** @internal */
  constructor(driver: Driver, names: Names, createSchema: boolean) {
    this.#driver = driver
    this.#table = names.rowLock
    this.#runner = new Runner({ openDriver: async () => driver, names, createSchema })
    this.#runner.use()
  }

  /**
   * Runs work in a transaction that holds the lock, and commits; rolls back if the work fails. Nested runs belong to the same transaction: the same name is
   * entered again, another one is locked as well, and one that fails undoes its own part only.
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
    checkName(name, 'The name of a lock')
    const {
      wait = Infinity,
      signal,
      isolation,
    } = checkOptions(options, TRANSACTION_LOCK_OPTIONS, "{ wait: '5s' }")
    checkSignal(signal)
    const waitMs = wait === Infinity ? Infinity : toMs(wait, { name: 'wait', minMs: 0 })
    if (isolation !== undefined && !ISOLATIONS.includes(isolation))
      throw invalid(`isolation is '${isolation}', but must be one of ${ISOLATIONS.join(', ')}`)
    if (signal?.aborted) throw aborted(name, signal)
    const around = frames.getStore()
    const isInside = around?.isOpen && around.lock === (this as unknown)
    try {
      return await (isInside
        ? this.#runInside(around, name, work, { waitMs, signal })
        : this.#runUnlessAborted(name, work, { waitMs, signal }, isolation))
    } catch (error) {
      throw error instanceof NotLocked ? refusal(name, waitMs, error.cause) : error
    }
  }

  /** Tells of an abort at once, also while the pool has no connection to lend. */
  #runUnlessAborted<T>(
    name: string,
    work: (tx: Tx) => T | Promise<T>,
    patience: Patience,
    isolation: string | undefined,
  ): Promise<T> {
    const { signal } = patience
    if (!signal) return this.#runOutermost(name, work, patience, isolation)
    let isLocked = false
    const lockedWork = (tx: Tx): T | Promise<T> => {
      // The caller has heard that by now, although the lock came first.
      if (signal.aborted) throw aborted(name, signal)
      isLocked = true
      return work(tx)
    }
    const running = this.#runOutermost(name, lockedWork, patience, isolation)
    return unlessAborted(running, signal, () => (isLocked ? null : aborted(name, signal)))
  }

  async #runOutermost<T>(
    name: string,
    work: (tx: Tx) => T | Promise<T>,
    { waitMs, signal }: Patience,
    isolation: string | undefined,
  ): Promise<T> {
    const deadline = systemEnv.now() + waitMs
    for (let attempt = 1; ; attempt++) {
      await this.#ready()
      try {
        return await this.#onConnection(async (transaction) => {
          await transaction.begin(name, { deadline, signal }, isolation).catch(notLocked)
          const names = new Set([name])
          return this.#work({ transaction, names, depth: 0 }, work)
        })
      } catch (error) {
        if (attempt > 1 || !(error instanceof NotLocked) || !isSchemaMissing(error.cause)) throw error
        this.#isReady = false
      }
    }
  }

  #runInside<T>(
    frame: Frame,
    name: string,
    work: (tx: Tx) => T | Promise<T>,
    { waitMs, signal }: Patience,
  ): Promise<T> {
    const { transaction, names } = frame
    const depth = frame.depth + 1
    const mine = frame.last.then(() =>
      transaction.part(depth, async () => {
        const deadline = systemEnv.now() + waitMs
        if (!names.has(name)) await transaction.enter(name, { deadline, signal }).catch(notLocked)
        names.add(name)
        return this.#work({ transaction, names, depth }, work)
      }),
    )
    frame.last = mine.catch(() => {})
    return mine
  }

  async #work<T>(
    { transaction, names, depth }: Pick<Frame, 'transaction' | 'names' | 'depth'>,
    work: (tx: Tx) => T | Promise<T>,
  ): Promise<T> {
    const lock = this as unknown as Frame['lock']
    const frame: Frame = { lock, transaction, names, depth, isOpen: true, last: Promise.resolve() }
    try {
      return await frames.run(frame, () => work(transaction.own as Tx))
    } finally {
      frame.isOpen = false
      // What was started inside belongs to the transaction, whether it was awaited or not.
      await frame.last
    }
  }

  /** A connection that cannot be set back to what it was is not given to anybody again. */
  async #onConnection<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const connection = await this.#driver.lend().catch(notLocked)
    const transaction = new Transaction(connection, this.#table)
    try {
      const result = await work(transaction)
      await transaction.commit()
      await transaction.leave()
      connection.release()
      return result
    } catch (error) {
      const ending = transaction
        .rollback()
        .then(() => transaction.leave())
        .then(connection.release, connection.destroy)
      if (!transaction.isLate) await ending
      throw error
    }
  }

  /** The table is made on first use, and again if it was dropped. */
  async #ready(): Promise<void> {
    if (this.#isReady) return
    await this.#runner.query(`SELECT turns FROM ${this.#table} LIMIT 0`)
    this.#isReady = true
  }
}

function notLocked(cause: unknown): never {
  throw new NotLocked('not locked', { cause })
}

function refusal(resource: string, waitMs: number, reason: unknown): HoldfastError {
  const details = { resource, store: 'mysql' }
  if (reason instanceof HoldfastError) return reason
  if (isDeadlock(reason)) {
    const message = `'${resource}' could not be locked: two transactions waited for each other's locks, and the server has undone this one; lock several names in the same order everywhere`
    return new HoldfastError('STORE_UNAVAILABLE', message, { ...details, cause: reason, retryable: true })
  }
  if (!(reason instanceof Busy)) return explain(reason)
  const message = `'${resource}' could not be acquired within ${waitMs} ms; another transaction holds it`
  return new HoldfastError('ACQUIRE_TIMEOUT', message, details)
}
