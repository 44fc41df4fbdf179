/**
 * What happened in a run: one record per line of a JSON Lines file. Times are microseconds of the
 * monotonic clock that all processes of a machine share. `from`: just before the call was made;
 * `to`: just after its answer was seen; null: no answer came, so it may take effect at any later
 * time, or never.
 */
export type HistoryRecord = AcquireRecord | EndRecord | WriteRecord | ReadRecord | FaultRecord

/** A kind of line: who may hold at the same time. */
export type LockKind = 'mutex' | 'read' | 'write' | 'semaphore'

/** A lock was asked for. Requests that were refused or failed without a hold are left out. */
export interface AcquireRecord {
  readonly type: 'acquire'
  readonly lock: string
  readonly kind: LockKind
  /** Of a semaphore: how many of `capacity` it takes. */
  readonly permits?: number
  readonly capacity?: number
  /** Unique in the run; names the process, too: `3/17`. */
  readonly hold: string
  readonly from: number
  /** null: the process died before it knew whether it holds. */
  readonly to: number | null
  readonly fence: number | null
  /**
   * With `to` null: its caller was alive and still waited at this time. Left out: the process died.
   */
  readonly waitedUntil?: number
}

/** A hold ended. */
export interface EndRecord {
  readonly type: 'end'
  readonly hold: string
  /**
   * Released: just before `release` was called. Lost, or its process killed: the last moment at
   * which the holder saw that it was valid; if it never did, `from` of its acquisition.
   */
  readonly from: number
  /** When `release` had resolved with true; null: it was lost, or nobody knows. */
  readonly to: number | null
}

/** A write to a register under a fence, checked by a guard. Each value is written once. */
export interface WriteRecord {
  readonly type: 'write'
  readonly register: string
  readonly hold: string
  readonly fence: number
  readonly value: string
  readonly from: number
  readonly to: number | null
  /** false: the guard called the fence stale; null: unknown. */
  readonly isAccepted: boolean | null
}

/** A read of a register under a fence, through the same guard. */
export interface ReadRecord {
  readonly type: 'read'
  readonly register: string
  readonly hold: string
  readonly fence: number
  /** null: nothing was written yet, or `isAccepted` is not true. */
  readonly value: string | null
  readonly from: number
  readonly to: number | null
  readonly isAccepted: boolean | null
}

/** A fault was made at `from` and healed at `to`. */
export interface FaultRecord {
  readonly type: 'fault'
  readonly name: string
  readonly from: number
  readonly to: number
}
