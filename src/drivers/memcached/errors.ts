/**
 * What failed:
 * - `UNREACHABLE`: no connection, or it broke before the answer came; the command may be done
 * - `REFUSED`: the server answered with an error
 * - `CLOSED`: the client was closed
 */
export type MemcachedErrorCode = 'UNREACHABLE' | 'REFUSED' | 'CLOSED'

export class MemcachedError extends Error {
  readonly code: MemcachedErrorCode

  constructor(code: MemcachedErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'MemcachedError'
    this.code = code
  }
}
