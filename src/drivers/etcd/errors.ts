/** The codes of all errors of the client: those of gRPC that etcd uses, and `CLOSED`. */
export type EtcdErrorCode =
  | 'CANCELLED'
  | 'UNKNOWN'
  | 'INVALID_ARGUMENT'
  /** The request timed out before the answer came. */
  | 'DEADLINE_EXCEEDED'
  /** Also: there is no such lease. */
  | 'NOT_FOUND'
  | 'PERMISSION_DENIED'
  | 'RESOURCE_EXHAUSTED'
  | 'FAILED_PRECONDITION'
  | 'OUT_OF_RANGE'
  | 'UNIMPLEMENTED'
  | 'INTERNAL'
  /** The connection broke, or the server has no leader. */
  | 'UNAVAILABLE'
  | 'UNAUTHENTICATED'
  /** `close` was called. */
  | 'CLOSED'

const CODES: Readonly<Record<number, EtcdErrorCode>> = {
  1: 'CANCELLED',
  3: 'INVALID_ARGUMENT',
  4: 'DEADLINE_EXCEEDED',
  5: 'NOT_FOUND',
  7: 'PERMISSION_DENIED',
  8: 'RESOURCE_EXHAUSTED',
  9: 'FAILED_PRECONDITION',
  11: 'OUT_OF_RANGE',
  12: 'UNIMPLEMENTED',
  13: 'INTERNAL',
  14: 'UNAVAILABLE',
  16: 'UNAUTHENTICATED',
}

/** What an `EtcdError` tells beside its code. */
export interface EtcdErrorDetails {
  /** Whether the request may have been carried out in spite of the error. */
  maybeDone?: boolean
  /** What the connection complained about. */
  cause?: unknown
}

/**
 * The one error class of the client. Branch on `code`. If `maybeDone` is true, find out whether the
 * request was carried out before you repeat it.
 *
 * @example
 * ```ts
 * import { EtcdClient, EtcdError } from 'holdfast/etcd/client'
 *
 * const etcd = new EtcdClient('localhost:2379')
 * try {
 *   await etcd.put('greeting', 'hello')
 * } catch (error) {
 *   if (error instanceof EtcdError && error.maybeDone) console.log('perhaps written, perhaps not')
 *   else throw error
 * }
 * await etcd.close()
 * ```
 */
export class EtcdError extends Error {
  /** What went wrong; branch on this. */
  readonly code: EtcdErrorCode
  /** Whether the request may have been carried out in spite of the error. */
  readonly maybeDone: boolean

  constructor(code: EtcdErrorCode, message: string, details: EtcdErrorDetails = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined)
    this.name = 'EtcdError'
    this.code = code
    this.maybeDone = details.maybeDone ?? false
  }
}

/**
 * After these the request may have been carried out: a leader that was lost, or a server that is
 * slow or ends, may have passed it on.
 */
const MAYBE_DONE: ReadonlySet<EtcdErrorCode> = new Set([
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'CANCELLED',
  'INTERNAL',
  'UNKNOWN',
])

/** The error of a gRPC status other than 0. */
export function errorOfStatus(status: number, message: string): EtcdError {
  const code = CODES[status] ?? 'UNKNOWN'
  const maybeDone = MAYBE_DONE.has(code)
  return new EtcdError(code, message || `etcd answered with the status ${status}`, { maybeDone })
}

/** The text of a status, which is encoded like a part of a URL. */
export function decodeStatusMessage(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // Not every proxy encodes it.
    return text
  }
}

/** The same error, for a request that was sent before it happened. */
export function asMaybeDone(error: EtcdError): EtcdError {
  if (error.maybeDone) return error
  return new EtcdError(error.code, error.message, { maybeDone: true, cause: error })
}
