/**
 * The codes of all errors of the client. The first group comes from the server, the second is our
 * own.
 */
export type ZooKeeperErrorCode =
  | 'NO_NODE'
  | 'NODE_EXISTS'
  | 'BAD_VERSION'
  | 'NOT_EMPTY'
  | 'NO_CHILDREN_FOR_EPHEMERALS'
  | 'NO_AUTH'
  | 'AUTH_FAILED'
  | 'INVALID_ACL'
  | 'SESSION_EXPIRED'
  | 'SESSION_MOVED'
  | 'BAD_ARGUMENTS'
  | 'UNIMPLEMENTED'
  | 'QUOTA_EXCEEDED'
  | 'THROTTLED'
  | 'SERVER_ERROR'
  /** The connection broke before the answer came. */
  | 'CONNECTION_LOSS'
  /** The request timed out before the answer came. */
  | 'REQUEST_TIMEOUT'
  /** Too many requests wait already; nothing was sent. */
  | 'QUEUE_FULL'
  /** More than a server accepts; nothing was sent. */
  | 'TOO_LARGE'
  /** `close` was called. */
  | 'CLOSED'

const SERVER_CODES: Readonly<Record<number, ZooKeeperErrorCode>> = {
  [-4]: 'CONNECTION_LOSS',
  [-6]: 'UNIMPLEMENTED',
  [-8]: 'BAD_ARGUMENTS',
  [-101]: 'NO_NODE',
  [-102]: 'NO_AUTH',
  [-103]: 'BAD_VERSION',
  [-108]: 'NO_CHILDREN_FOR_EPHEMERALS',
  [-110]: 'NODE_EXISTS',
  [-111]: 'NOT_EMPTY',
  [-112]: 'SESSION_EXPIRED',
  [-114]: 'INVALID_ACL',
  [-115]: 'AUTH_FAILED',
  [-118]: 'SESSION_MOVED',
  [-125]: 'QUOTA_EXCEEDED',
  [-127]: 'THROTTLED',
}

export interface ZooKeeperErrorDetails {
  /** The path that was asked for. */
  path?: string
  /** Whether the request may have been carried out in spite of the error. */
  maybeDone?: boolean
  /** The position of the operation that failed in a multi. */
  index?: number
  /** Of a request that was answered: see `Answer`. */
  sentAt?: number
  touchedAt?: number
  zxid?: bigint
  cause?: unknown
}

/**
 * The one error class of the client. Branch on `code`. If `maybeDone` is true, find out whether the
 * request was carried out before you repeat it.
 *
 * @example
 * ```ts
 * import { ZooKeeperClient, ZooKeeperError } from 'holdfast/zookeeper/client'
 *
 * const zk = new ZooKeeperClient('127.0.0.1:2181')
 * try {
 *   await zk.create('/config')
 * } catch (error) {
 *   if (!(error instanceof ZooKeeperError && error.code === 'NODE_EXISTS')) throw error
 * }
 * ```
 */
export class ZooKeeperError extends Error {
  readonly code: ZooKeeperErrorCode
  readonly path: string | undefined
  readonly maybeDone: boolean
  readonly index: number | undefined
  readonly sentAt: number | undefined
  readonly touchedAt: number | undefined
  readonly zxid: bigint | undefined

  constructor(code: ZooKeeperErrorCode, message: string, details: ZooKeeperErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'ZooKeeperError'
    this.code = code
    this.path = details.path
    this.maybeDone = details.maybeDone ?? false
    this.index = details.index
    this.sentAt = details.sentAt
    this.touchedAt = details.touchedAt
    this.zxid = details.zxid
  }
}

/** The error that a server answered with. */
export function serverError(number: number, what: string, details: ZooKeeperErrorDetails): ZooKeeperError {
  const code = SERVER_CODES[number] ?? 'SERVER_ERROR'
  return new ZooKeeperError(code, `ZooKeeper answered ${what} with ${code} (${number})`, details)
}
