import type { HoldfastError } from '../../base/errors.js'
import type { Isolation } from './options.js'

/** How long a transaction waits for a lock. */
export interface LockWait {
  /** By the clock of the environment; Infinity: no limit. */
  readonly deadline: number
  readonly signal: AbortSignal | undefined
}

/** A transaction of the caller's driver, or a part of one that can be rolled back by itself. */
export interface LockTransaction {
  /** What the caller's work gets: the driver's own transaction or connection. */
  readonly client: unknown
  /** Locks the row of the name until the transaction ends. */
  lock(name: string, wait: LockWait): Promise<void>
  /** Runs a part in a savepoint, and rolls it back if it rejects. */
  part<T>(work: (inner: LockTransaction) => Promise<T>): Promise<T>
}

/**
 * Why a transaction did not get its lock. `busy`: another transaction held it until the deadline.
 * `rolled back`: the server let another transaction win; a new attempt may succeed at once.
 */
export type LockFailure = 'busy' | 'rolled back' | 'schema missing' | 'other'

/** What the transaction lock needs of a database. */
export interface TransactionBackend {
  /** The name that errors carry, such as `postgres`. */
  readonly store: string
  /** Creates the table of the lock if it is missing. Remembers success until `forgetSchema`. */
  ensureSchema(): Promise<void>
  forgetSchema(): void
  /** Begins a transaction, runs the work and commits; rolls back if the work rejects. */
  run<T>(isolation: Isolation | undefined, work: (transaction: LockTransaction) => Promise<T>): Promise<T>
  failureOf(error: unknown): LockFailure
  /** Turns a driver's error into one of ours. Ours stay unchanged. */
  explain(error: unknown, name: string): HoldfastError
}
