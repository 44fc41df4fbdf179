import type { HoldfastError } from '../../base/errors.js'

export const PROBLEM_TYPE = 'application/problem+json'
export const STALE_TYPE = 'urn:holdfast:problem:stale-fence'

/** A problem document (RFC 9457): the body of a refusal. */
export interface FenceProblem {
  /** A URN that names the kind of problem. */
  type: string
  /** The kind of problem, in words. */
  title: string
  /** 400: malformed, or of another resource; 409: stale; 428: missing. */
  status: 400 | 409 | 428
  /** What is wrong with this request. */
  detail: string
  /** With status 409: the resource, if the guard knows it. */
  resource?: string
  /** With status 409: the newest fence of the resource. */
  newestFence?: number
}

/** The problem document for a STALE_FENCE error; undefined for any other. */
export function problemOf(error: unknown): FenceProblem | undefined {
  // By its code: the guard that refused may come from another copy of this package.
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'STALE_FENCE') return undefined
  const { message: detail, resource, newestFence } = error as HoldfastError
  return {
    type: STALE_TYPE,
    title: 'Stale fence',
    status: 409,
    detail,
    ...(resource === undefined ? {} : { resource }),
    ...(newestFence === undefined ? {} : { newestFence }),
  }
}

export function malformed(detail: string): FenceProblem {
  return { type: 'urn:holdfast:problem:malformed-fence', title: 'Malformed fence', status: 400, detail }
}

export function wrongResource(expected: string, given: string): FenceProblem {
  const detail = `This request is about '${expected}', but the fence belongs to '${given}'; send the fence of the lock that protects it`
  return {
    type: 'urn:holdfast:problem:wrong-resource',
    title: 'Fence of another resource',
    status: 400,
    detail,
  }
}

export function missing(header: string): FenceProblem {
  const detail = `Write under a lock, and send its fence in the header ${header}`
  return { type: 'urn:holdfast:problem:missing-fence', title: 'Fence required', status: 428, detail }
}
