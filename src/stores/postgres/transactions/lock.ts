import { AsyncLocalStorage } from 'node:async_hooks'
import { aborted, checkSignal, unlessAborted } from '../../../base/abort.js'
import { type Duration, toMs } from '../../../base/duration.js'
import { type Env, systemEnv } from '../../../base/env.js'
import { HoldfastError, invalid } from '../../../base/errors.js'
import { checkName } from '../../../base/names.js'
import { checkOptions, type OptionNames } from '../../../base/options.js'
import { encodeText } from '../../../base/text.js'
import type { Driver } from '../driver.js'
import { explain, isBusy, isMissing, isUndone } from '../failures.js'
import { Installation } from '../install.js'
import { inSchema } from '../schema.js'
import type { Transaction, Transactions } from './transactions.js'

export interface TransactionLockOptions {
  /** How long to wait for the lock; 0 takes it only if it is free. For ever unless told. */
  wait?: Duration | undefined
  /** Gives up waiting when aborted, with ABORTED. No effect once the lock is held. The connection is free again within a second. */
  signal?: AbortSignal | undefined
  /** The isolation of the transaction; the database's default unless told. Inside another run it is that one's. */
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
  readonly names: ReadonlySet<string>
  isOpen: boolean
  /** Nested runs take turns: they share one connection, and savepoints are a stack. */
  last: Promise<unknown>
}

const frames = new AsyncLocalStorage<Frame>()

/** With a signal, the wait is cut into pieces: the server ends a statement that waits only when its time is over. */
const PIECE_MS = 1000
/** Begins before the second piece. */
const PIECES = 'holdfast_pieces'

/** How long a caller waits, and whether it still does. */
interface Patience {
  readonly deadline: number
  readonly signal: AbortSignal | undefined
}

/** The transaction had not got the lock when it failed, so nothing of the caller's work was done. */
class NotLocked extends Error {}

/**
 * A lock that is the row lock of the caller's own transaction: work and release commit together, and the server frees it when the client dies.
 * Made by `transactionLock`.
 */
export class TransactionLock<Tx> {
  readonly #transactions: Transactions
  readonly #driver: Driver
  readonly #schema: string
  readonly #installation: Installation
  readonly #env: Env = systemEnv

  /** @internal */
  constructor(transactions: Transactions, driver: Driver, schema: string) {
    this.#transactions = transactions
    this.#driver = driver
    this.#schema = schema
    this.#installation = new Installation(schema)
  }

  /**
   * Runs work in a transaction that holds the lock, and commits; rolls back if the work fails. Nested runs belong to the same transaction: the same name is
   * entered again, another one is locked as well, and one that fails undoes its own part only.
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
    if (around?.isOpen && around.lock === (this as unknown))
      return this.#runInside(around, name, work, waitMs, signal)
    const begin = isolation === undefined ? 'BEGIN' : `BEGIN ISOLATION LEVEL ${isolation.toUpperCase()}`
    if (!signal) return this.#runOutermost(name, work, waitMs, begin, signal)
    let isLocked = false
    const lockedWork = (tx: Tx): T | Promise<T> => {
      // The caller has heard that by now, although the lock came first.
      if (signal.aborted) throw aborted(name, signal)
      isLocked = true
      return work(tx)
    }
    const running = this.#runOutermost(name, lockedWork, waitMs, begin, signal)
    return unlessAborted(running, signal, () => (isLocked ? null : aborted(name, signal)))
  }

  async #runOutermost<T>(
    name: string,
    work: (tx: Tx) => T | Promise<T>,
    waitMs: number,
    begin: string,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const deadline = this.#env.now() + waitMs
    for (;;) {
      try {
        await this.#installation.ensure(this.#driver)
        return await this.#transactions.run(begin, async (transaction) => {
          await this.#lock(transaction, name, { deadline, signal })
          return this.#work(transaction, new Set([name]), work)
        })
      } catch (error) {
        const reason = error instanceof NotLocked ? error.cause : error
        if (!(error instanceof NotLocked)) throw error
        if (isMissing(reason)) this.#installation.forget()
        else if (!isUndone(reason)) throw refusal(name, waitMs, reason)
      }
    }
  }

  #runInside<T>(
    frame: Frame,
    name: string,
    work: (tx: Tx) => T | Promise<T>,
    waitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const mine = frame.last.then(() =>
      frame.transaction.part(async (inner) => {
        const deadline = this.#env.now() + waitMs
        if (!frame.names.has(name)) await this.#lock(inner, name, { deadline, signal })
        return this.#work(inner, new Set([...frame.names, name]), work)
      }),
    )
    frame.last = mine.catch(() => {})
    return mine.catch((error) => {
      throw error instanceof NotLocked ? refusal(name, waitMs, error.cause) : error
    })
  }

  async #work<T>(
    transaction: Transaction,
    names: ReadonlySet<string>,
    work: (tx: Tx) => T | Promise<T>,
  ): Promise<T> {
    const lock = this as unknown as Frame['lock']
    const frame: Frame = { lock, transaction, names, isOpen: true, last: Promise.resolve() }
    try {
      return await frames.run(frame, () => work(transaction.own as Tx))
    } finally {
      frame.isOpen = false
      // What was started inside belongs to the transaction, whether it was awaited or not.
      await frame.last
    }
  }

  async #lock(transaction: Transaction, name: string, { deadline, signal }: Patience): Promise<void> {
    const leftMs = (): number => Math.max(0, deadline - this.#env.now())
    if (!signal) return this.#lockWithin(transaction, name, leftMs())
    for (let piece = 1; ; piece++) {
      const left = leftMs()
      try {
        await transaction.part((inner) => this.#lockWithin(inner, name, Math.min(left, PIECE_MS)))
        if (!signal.aborted) return
      } catch (error) {
        const isWaiting = error instanceof NotLocked && isBusy(error.cause) && left > PIECE_MS
        if (!isWaiting && !signal.aborted) throw error
      }
      if (signal.aborted) throw new NotLocked('not locked', { cause: aborted(name, signal) })
      // The savepoint of a part that fails stays. Without this each piece would begin one more inside the last.
      await transaction.change(piece === 1 ? `SAVEPOINT ${PIECES}` : `ROLLBACK TO SAVEPOINT ${PIECES}`, [])
    }
  }

  async #lockWithin(transaction: Transaction, name: string, waitMs: number): Promise<void> {
    // Zero would mean for ever. The time counts only while somebody else has it.
    const wait = waitMs === Infinity ? null : String(Math.max(1, Math.ceil(waitMs)))
    const sql = inSchema('SELECT holdfast.lock_row($1, $2)', this.#schema)
    await transaction.change(sql, [encodeText(name), wait]).catch((cause) => {
      throw new NotLocked('not locked', { cause })
    })
  }
}

function refusal(resource: string, waitMs: number, reason: unknown): HoldfastError {
  if (reason instanceof HoldfastError) return reason
  if (!isBusy(reason)) return explain(reason)
  const message = `'${resource}' could not be acquired within ${waitMs} ms; another transaction holds it`
  return new HoldfastError('ACQUIRE_TIMEOUT', message, { resource, store: 'postgres' })
}
