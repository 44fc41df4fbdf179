import { AsyncLocalStorage } from 'node:async_hooks'
import { nothing } from '../../base/nothing.js'
import type { LockTransaction } from './backend.js'

const frames = new AsyncLocalStorage<TransactionFrame>()

/** The transaction that the work of a run is in. Nested runs find it by their async context. */
export class TransactionFrame {
  readonly #lock: object
  readonly #transaction: LockTransaction
  /** The names that are locked until this part of the transaction ends. */
  readonly #names: Set<string>
  /** The run, of this lock or another one, that this run is inside of. */
  readonly #outer: TransactionFrame | undefined
  #isOpen = true
  #lastNested: Promise<unknown> = Promise.resolve()

  constructor(
    lock: object,
    transaction: LockTransaction,
    names: Iterable<string>,
    outer: TransactionFrame | undefined,
  ) {
    this.#lock = lock
    this.#transaction = transaction
    this.#names = new Set(names)
    this.#outer = outer
  }

  /** The innermost open run, of the given lock or of any, that the caller is inside of. */
  static around(lock?: object): TransactionFrame | undefined {
    let frame = frames.getStore()
    while (frame && !(frame.#isOpen && (lock === undefined || frame.#lock === lock))) frame = frame.#outer
    return frame
  }

  /** Runs the work. Nested runs that it started belong to the transaction, awaited or not. */
  async run<T>(work: (client: unknown) => T | Promise<T>): Promise<T> {
    try {
      return await frames.run(this, () => work(this.#transaction.client))
    } finally {
      this.#isOpen = false
      await this.#lastNested
    }
  }

  /**
   * Runs nested work in a savepoint, and locks the name if it is not locked yet. One at a time:
   * nested runs share a connection, and savepoints are a stack.
   */
  nested<T>(
    name: string,
    lock: (inner: LockTransaction) => Promise<void>,
    work: (client: unknown) => T | Promise<T>,
  ): Promise<T> {
    const outer = TransactionFrame.around()
    const running = this.#lastNested.then(async () => {
      const result = await this.#transaction.part(async (inner) => {
        if (!this.#names.has(name)) await lock(inner)
        return new TransactionFrame(this.#lock, inner, [...this.#names, name], outer).run(work)
      })
      // Not after a failure: PostgreSQL releases locks that were taken since the savepoint.
      this.#names.add(name)
      return result
    })
    this.#lastNested = running.catch(nothing)
    return running
  }
}
