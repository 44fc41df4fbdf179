/**
 * The stable codes of every error that Holdfast raises; `docs/errors.md` says what to do about
 * each.
 */
export type ErrorCode =
  | 'ACQUIRE_TIMEOUT'
  | 'ABORTED'
  | 'CANCELLED'
  | 'LINE_FULL'
  | 'HOLD_LOST'
  | 'NOT_HELD'
  | 'STALE_FENCE'
  | 'STORE_UNAVAILABLE'
  | 'UNSUPPORTED'
  | 'CAPACITY_MISMATCH'
  | 'UPGRADE_REFUSED'
  | 'INVALID_ARGUMENT'
  | 'CLOSED'

export interface ErrorDetails {
  /** The resource that was asked for. */
  resource?: string
  /** The store's name, such as `sqlite`. */
  store?: string
  /** The cause: a driver's error, or the reason of an abort. */
  cause?: unknown
  /** Whether a retry of the same call may succeed. */
  retryable?: boolean
  /** With STALE_FENCE: the newest fence that the guard has seen. */
  newestFence?: number
}

/**
 * The one error class of Holdfast. Branch on `code`, never on the message.
 *
 * @example
 * ```ts
 * import { Holdfast, HoldfastError } from 'holdfast'
 * import { memory } from 'holdfast/memory'
 *
 * const locks = new Holdfast(memory())
 * try {
 *   await locks.mutex('order:42').run(async () => {}, { wait: '1s' })
 * } catch (error) {
 *   if (error instanceof HoldfastError && error.code === 'ACQUIRE_TIMEOUT') console.log('busy, try later')
 *   else throw error
 * }
 * ```
 */
export class HoldfastError extends Error {
  /** What went wrong; branch on this. */
  readonly code: ErrorCode
  /** The resource that was asked for, where there is one. */
  readonly resource: string | undefined
  /** The store that failed, such as `sqlite`. */
  readonly store: string | undefined
  /** Whether a retry of the same call may succeed. */
  readonly retryable: boolean
  /** With STALE_FENCE: the newest fence that the guard has seen, which a later holder sent. */
  readonly newestFence: number | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined)
    this.name = 'HoldfastError'
    this.code = code
    this.resource = details.resource
    this.store = details.store
    this.retryable = details.retryable ?? false
    this.newestFence = details.newestFence
  }
}

/**
 * The same error with the stack of the present call. An error that was made in a timer, or is
 * shared by many callers, does not show which call failed.
 */
export function withOwnStack(error: unknown): unknown {
  if (!(error instanceof HoldfastError)) return error
  const { code, message, resource, store, retryable, newestFence } = error
  const details: Record<string, unknown> = { resource, store, retryable, newestFence }
  if ('cause' in error) details['cause'] = error.cause
  const own = new HoldfastError(code, message, details)
  Error.captureStackTrace(own, withOwnStack)
  return own
}

/** Whether a retry may help after a store's failure. Errors of other libraries count as final. */
export function isRetryable(error: unknown): boolean {
  return error instanceof HoldfastError && error.retryable
}

export function invalid(message: string, resource?: string): HoldfastError {
  return new HoldfastError('INVALID_ARGUMENT', message, resource === undefined ? {} : { resource })
}
