import type { PeerRequest } from './options.js'
import type { Pause } from './pause.js'

/** The answer to one attempt. */
export type TakeAnswer =
  | { readonly isGranted: true; readonly fence: number | null }
  /** Another attempt makes sense after a wake-up, and at latest after `retryMs`. */
  | { readonly isGranted: false; readonly retryMs: number }

/**
 * One request for a lock in the format of a peer. A client may send a command twice after a lost
 * connection, so every call must be harmless when it reaches the server again.
 */
export interface PeerClaim {
  /** Takes the lock if it is free. */
  take(request: PeerRequest): Promise<TakeAnswer>
  /**
   * Wakes the pause when the lock may be free. Resolves once nothing can be missed any more; a
   * format without messages has no `listen`.
   */
  listen?(pause: Pause): Promise<void>
  unlisten?(pause: Pause): void
  /** Resolves with whether the lock is still held. Never creates it. */
  renew(leaseMs: number): Promise<boolean>
  /** Resolves with whether the lock was still held. */
  release(): Promise<boolean>
  /** Removes what an attempt may have left: a lock whose grant was not heard, a place in line. */
  leave(): Promise<unknown>
  /** Whether a waiter has a place in line on the server. */
  readonly hasPlace: boolean
}

/** A lock that was granted. */
export interface PeerGrant {
  readonly claim: PeerClaim
  readonly fence: number | null
  readonly leaseMs: number
  /** When the attempt that was granted was sent. */
  readonly sentAt: number
}
