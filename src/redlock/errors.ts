import type { ExecutionStats } from './votes.js'

/**
 * The resource is held by another lock, or no longer by this one. You find it on the `error` event
 * and in the `attempts` of an `ExecutionError`.
 */
export class ResourceLockedError extends Error {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.name = 'ResourceLockedError'
  }
}

/**
 * A lock could not be acquired, extended or released. `attempts` tells what the servers said;
 * `cause` is the error of Holdfast, which explains it.
 */
export class ExecutionError extends Error {
  /** What the servers said: here always one attempt, or none if no server was asked. */
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>

  constructor(
    message: string,
    attempts: ReadonlyArray<Promise<ExecutionStats>>,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options)
    this.name = 'ExecutionError'
    this.attempts = attempts
  }
}
