import { type ErrorCode, HoldfastError } from '../base/errors.js'
import type { ProblemDocument } from './shapes.js'

/** Codes of problems that no error of the library has. */
export type HttpCode =
  | 'UNAUTHORIZED'
  | 'FORBIDDEN'
  | 'CROSS_SITE'
  | 'READ_ONLY'
  | 'NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'BODY_TOO_LARGE'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'TOO_MANY_REQUESTS'
  | 'TOO_MANY_STREAMS'
  | 'TOO_MANY_WAITS'
  | 'AUDIT_UNAVAILABLE'
  | 'INTERNAL'

type ProblemCode = ErrorCode | HttpCode

const STATUS_OF: Readonly<Record<ProblemCode, number>> = {
  INVALID_ARGUMENT: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  CROSS_SITE: 403,
  READ_ONLY: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  ACQUIRE_TIMEOUT: 409,
  CAPACITY_MISMATCH: 409,
  UPGRADE_REFUSED: 409,
  STALE_FENCE: 409,
  ABORTED: 409,
  CANCELLED: 409,
  NOT_HELD: 410,
  HOLD_LOST: 410,
  BODY_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  TOO_MANY_REQUESTS: 429,
  INTERNAL: 500,
  UNSUPPORTED: 501,
  LINE_FULL: 503,
  STORE_UNAVAILABLE: 503,
  CLOSED: 503,
  AUDIT_UNAVAILABLE: 503,
  TOO_MANY_STREAMS: 503,
  TOO_MANY_WAITS: 503,
}

/** Why a request is refused. Its message reaches the client, so it names nothing secret. */
export class Problem extends Error {
  constructor(
    readonly code: HttpCode,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message)
  }
}

/** The answer to a request that failed. */
export function problemResponse(error: unknown): Response {
  const document = problemDocument(error)
  const headers = error instanceof Problem ? error.headers : {}
  const retry: Record<string, string> = document.status === 503 ? { 'retry-after': '1' } : {}
  return new Response(JSON.stringify(document), {
    status: document.status,
    headers: { ...retry, ...headers, 'content-type': 'application/problem+json' },
  })
}

function problemDocument(error: unknown): ProblemDocument {
  const code = codeOf(error)
  // An unexpected error may quote anything: its message stays here.
  const detail = code === 'INTERNAL' ? 'The server failed unexpectedly' : (error as Error).message
  const resource = error instanceof HoldfastError ? error.resource : undefined
  return {
    type: `urn:holdfast:problem:${code.toLowerCase().replaceAll('_', '-')}`,
    title: titleOf(code),
    status: STATUS_OF[code],
    detail,
    code,
    ...(resource === undefined ? {} : { resource }),
  }
}

/** The stable code of a failure. */
export function codeOf(error: unknown): ProblemCode {
  const code = error instanceof Problem || error instanceof HoldfastError ? error.code : 'INTERNAL'
  return Object.hasOwn(STATUS_OF, code) ? code : 'INTERNAL'
}

function titleOf(code: string): string {
  const words = code.toLowerCase().replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
