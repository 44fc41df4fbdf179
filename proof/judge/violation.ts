import type { HistoryRecord } from '../history.js'

/** What must not be in a history. */
export type Rule =
  /** Two holds that exclude each other at one time. */
  | 'overlap'
  /** A later hold without a higher fence. */
  | 'fence'
  /** More permits than the capacity. */
  | 'permits'
  /** A lock that is free, and a waiter that does not get it. */
  | 'lost waiter'
  /** A guard accepted a fence after a higher one. */
  | 'stale call accepted'
  /** A guard refused a fence, and has seen no higher one. */
  | 'fresh call refused'
  /** A read does not give the last value that was accepted. */
  | 'lost update'

export interface Violation {
  readonly rule: Rule
  /** The name of the lock or register. */
  readonly object: string
  readonly text: string
  readonly records: readonly HistoryRecord[]
}
