import type { Duration } from '../base/duration.js'
import type { Lock } from './lock.js'

/**
 * `exclusive`: one holder. `shared`: any number of holders, but no exclusive one at the same time.
 */
export type LockMode = 'exclusive' | 'shared'

/** The options of `request`. */
export interface LockOptions {
  /** Default `'exclusive'`. */
  mode?: LockMode | undefined
  /** Do not wait: if the lock is not free, the callback gets null. Default false. */
  ifAvailable?: boolean | undefined
  /** Revoke all holds of the lock, and go ahead of all waiters. Default false. */
  steal?: boolean | undefined
  /** Its abort ends the wait, with the signal's reason. No effect once the lock is granted. */
  signal?: AbortSignal | undefined
}

/**
 * Gets the lock, or null with `ifAvailable` if it was not free. The lock is held until the returned
 * promise settles.
 */
export type LockGrantedCallback<T> = (lock: Lock | null) => T

/** A request or a held lock, as `query` lists it. */
export interface LockInfo {
  /** The name of the lock. */
  name: string
  /** How it is held or asked for. */
  mode: LockMode
  /** The same for all locks of one `Holdfast` client, and unique to it. */
  clientId: string
}

/** What `query` resolves with. */
export interface LockManagerSnapshot {
  /** The locks that are held, of all clients in the space. */
  held: LockInfo[]
  /** In order of their requests, for each name. */
  pending: LockInfo[]
}

/** The options of `new LockManager()`. */
export interface LockManagerOptions {
  /**
   * How long a lock stays taken after its holder's process dies or loses the store. A living
   * process renews it. Default `'30s'`.
   */
  lease?: Duration | undefined
}
