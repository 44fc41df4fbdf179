/** What asks for a hold. */
export type Primitive =
  | 'mutex'
  | 'read'
  | 'write'
  | 'semaphore'
  | 'all'
  | 'election'
  | 'once'
  | 'barrier'
  | 'web-lock'

/**
 * How a request ended. `granted`: it became a hold. `refused`: not free, and the caller does not
 * wait. `full`: `maxWaiters` waited already. `timeout`: its wait was over. `aborted`: by its
 * signal. `cancelled`: by an operator. `closed`: its client was closed. `failed`: anything else,
 * such as a store that does not answer.
 */
export type AcquireOutcome =
  | 'granted'
  | 'refused'
  | 'full'
  | 'timeout'
  | 'aborted'
  | 'cancelled'
  | 'closed'
  | 'failed'

/**
 * How a hold ended. `released`: given back. `expired`: not renewed in time, or its `maxHold` was
 * over. `lost`: the store no longer had it; it was broken, taken over or forgotten there. `closed`:
 * revoked by the `close()` of its client. `forgotten`: garbage-collected without a release.
 * `handed-over`: given to a client of the lock API, which renews and releases it from then on.
 */
export type HoldEnd = 'released' | 'expired' | 'lost' | 'closed' | 'forgotten' | 'handed-over'

/** What the contexts of a request and of its hold have in common. */
export interface LockDetails {
  /** The name of what is locked. */
  readonly resource: string
  /** The space of the client. */
  readonly space: string
  /** The name of the store, such as `redis`. */
  readonly store: string
  /** What asks for the hold. */
  readonly primitive: Primitive
  /** How many permits it asks for; 2^30 (all) for a mutex or a writer. */
  readonly permits: number
  /** The label that the caller gave; null: none. */
  readonly label: string | null
  /** The owner that the caller gave; null: none. */
  readonly owner: string | null
}

/** The context of `holdfast:acquire`: one request, from the call until it is answered. */
export interface AcquireContext extends LockDetails {
  /** How long the caller waits at most; 0: it does not wait. */
  readonly longestWaitMs: number
  /** Whether it was told to wait in line. A grant may overtake that answer. */
  isQueued: boolean
  /** How it ended; undefined while it is under way. */
  outcome: AcquireOutcome | undefined
  /** How long it took; undefined while it is under way. */
  waitMs: number | undefined
  /** The fence of the hold; undefined unless it was granted. */
  fence: number | undefined
  /** Why it failed. Published by `error`. */
  error?: unknown
}

/** The context of `holdfast:hold`: one hold, from its grant until it is over. */
export interface HoldContext extends LockDetails {
  /** The request that became this hold: the context of its `holdfast:acquire`. */
  readonly acquire: AcquireContext
  /** The fence of the hold. */
  readonly fence: number
  /** How long it lasts without a renewal. */
  readonly leaseMs: number
  /** How it ended; undefined while it is held. */
  outcome: HoldEnd | undefined
  /** How long it was held; undefined while it is held. */
  holdMs: number | undefined
  /** Why it was lost, or why the store could not be told of the release. Published by `error`. */
  error?: unknown
}

/** The context of `holdfast:run`: the work inside a `run`. */
export interface RunContext {
  /** The hold under which the work runs: the context of its `holdfast:hold`. */
  readonly hold: HoldContext
  /**
   * For a subscriber of `start` that cannot bind a store, such as OpenTelemetry with its
   * `context.with`: called with the work, and has to call it.
   */
  around?: <T>(work: () => T) => T
  /** The error of the work. Published by `error`. */
  error?: unknown
}

/** The context of `holdfast:pulse`: one call that renews holds and places in line. */
export interface PulseContext {
  /** The space of the client. */
  readonly space: string
  /** The name of the store, such as `redis`. */
  readonly store: string
  /** How many holds and places in line the call renews. */
  readonly beats: number
  /** How long it took; undefined while it is under way. */
  durationMs: number | undefined
  /** Why it failed. It is repeated. Published by `error`. */
  error?: unknown
}

/** The message of `holdfast:store`: a call that failed, or was not answered in time. */
export interface StoreFailure {
  /** The space of the client. */
  readonly space: string
  /** The name of the store, such as `redis`. */
  readonly store: string
  /** What the store said, or that it did not answer. */
  readonly error: unknown
}

/** The message of `holdfast:fence`: a guard refused a stale fence. */
export interface StaleFence {
  /** The name of what was locked, if the guard knows it. */
  readonly resource: string | undefined
  /** The fence that was refused. */
  readonly fence: number
  /** The newest fence that was there before. */
  readonly newestFence: number
}
