import { checkSignal } from '../../base/abort.js'
import { type Duration, toMs } from '../../base/duration.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import { readWait } from '../limits.js'

/** The options of each call for a lock that is shared with other programs. */
export interface PeerLockOptions {
  /** How long to wait for the lock; 0 takes it only if it is free. No limit by default. */
  wait?: Duration | undefined
  /**
   * How long the lock lives without a renewal. It is renewed at a third of this while the process
   * lives. Default: that of the locks, 30 seconds.
   */
  lease?: Duration | undefined
  /** Ends the wait with ABORTED when it aborts. No effect once the lock is held. */
  signal?: AbortSignal | undefined
}

const PEER_LOCK_OPTIONS: OptionNames<PeerLockOptions> = { wait: true, lease: true, signal: true }

/** The peers renew at a third of this, too; a shorter lease would end before its first renewal. */
const SHORTEST_LEASE_MS = 100

/** What a caller asks for, checked. */
export interface PeerRequest {
  readonly waitMs: number
  readonly leaseMs: number
  readonly signal: AbortSignal | undefined
}

export function readPeerRequest(options: PeerLockOptions, defaultLeaseMs: number): PeerRequest {
  const { wait, lease, signal } = checkOptions(options, PEER_LOCK_OPTIONS, "{ wait: '5s' }")
  return {
    waitMs: readWait(wait),
    leaseMs: lease === undefined ? defaultLeaseMs : readLease(lease),
    signal: checkSignal(signal),
  }
}

/** Whole milliseconds, as Redis counts. */
export function readLease(lease: Duration): number {
  return Math.ceil(toMs(lease, { name: 'lease', minMs: SHORTEST_LEASE_MS }))
}
