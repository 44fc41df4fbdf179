import type { HoldfastError } from '../base/errors.js'
import type { Lease } from './lease.js'
import type { Request } from './request.js'

/** Where a request waits. */
export interface RequestLine {
  /**
   * The lease that stands in the store's line for this request: its own, or that of the request
   * before it.
   */
  readonly lease: Lease | null
  /** Whether the first answer about that lease is this request's own. */
  isFirst(request: Request): boolean
  /** The request is served from now on. */
  onServed(request: Request): void
  /** The request has given up. */
  onLeft(request: Request): void
}

/**
 * The requests that a lease stands for. The lease takes the next one from here, and reports here
 * what the store has said.
 */
export interface Successors extends RequestLine {
  /** The request that this lease may serve next, at this moment; null: none. */
  next(lease: Lease): Request | null
  /**
   * How many further fences could be used now: the lease is about to be asked for, or spoken of.
   */
  fencesWanted(lease: Lease): number
  /** The store has answered: the lease stands in line, is held, or held still. */
  onAnswer(lease: Lease): void
  /** The lease serves nobody any more: its place is gone, or it was lost or given back. */
  onOver(lease: Lease): void
  /**
   * An operator has taken the claim out of the line, or too many wait there: no request that waits
   * for it asks again.
   */
  onTurnedAway(lease: Lease, error: HoldfastError): void
  /**
   * The store refused the claim or has been silent for too long; null: the lock is not free, and
   * the request does not wait.
   */
  onFailure(lease: Lease, error: HoldfastError | null): void
}
