import type { Value } from '../driver.js'

/** A transaction of the caller's driver, as far as the lock needs it. */
export interface Transaction {
  /** What the caller's work is given: the driver's own. */
  readonly own: unknown
  /** One statement. */
  change(sql: string, values: readonly Value[]): Promise<void>
  /** Runs a part of it that can be undone by itself. */
  part<T>(work: (inner: Transaction) => Promise<T>): Promise<T>
}

/** Begins transactions. */
export interface Transactions {
  /** Begins, works, and commits; rolls back where the work fails. */
  run<T>(begin: string, work: (transaction: Transaction) => Promise<T>): Promise<T>
}
