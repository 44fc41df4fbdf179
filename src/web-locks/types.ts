import type { Duration } from '../base/duration.js'
import type { Lock } from './lock.js'

/** `exclusive`: one holder. `shared`: any number of holders, but no exclusive one beside them. */
export type LockMode = 'exclusive' | 'shared'

export interface LockOptions {
  /** Default `'exclusive'`. */
  mode?: LockMode | undefined
  /** Do not wait: if the lock is not to be had at once, the callback gets null. Default false. */
  ifAvailable?: boolean | undefined
  /** Take the lock from whoever holds it, before all who wait. Default false. */
  steal?: boolean | undefined
  /** Gives up waiting when aborted, with the signal's reason. Has no effect once the lock is granted. */
  signal?: AbortSignal | undefined
}

/** Gets the lock, or null with `ifAvailable` when it was not to be had. The lock is held until what it returns has settled. */
export type LockGrantedCallback<T> = (lock: Lock | null) => T

export interface LockInfo {
  name: string
  mode: LockMode
  /** The same for all locks of one `Holdfast` client, unlike that of any other. */
  clientId: string
}

export interface LockManagerSnapshot {
  held: LockInfo[]
  /** For each name, in the order in which they were requested. */
  pending: LockInfo[]
}

export interface LockManagerOptions {
  /**
   * How long a lock stays taken when the process of its holder dies or is cut off; while that lives, it is renewed.
   * Default `'30s'`.
   */
  lease?: Duration | undefined
}
