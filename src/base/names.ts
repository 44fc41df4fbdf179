import { invalid } from './errors.js'

/** Long enough for real names, short enough for every store. */
export const MAX_NAME_BYTES = 8192

/**
 * Names are opaque: case, spaces, slashes and NUL all count. Only names that some store would
 * change are refused: the empty one, text without a UTF-8 form (a lone surrogate would become
 * U+FFFD and collide), and names that are too long.
 */
export function checkName(name: unknown, what: string): string {
  if (typeof name !== 'string' || name === '')
    throw invalid(`${what} must be a non-empty string, not ${name === '' ? "''" : typeof name}`)
  if (!name.isWellFormed())
    throw invalid(`${what} contains half of a surrogate pair, which no store can keep; use well-formed text`)
  const bytes = Buffer.byteLength(name)
  if (bytes > MAX_NAME_BYTES)
    throw invalid(`${what} has ${bytes} bytes, more than ${MAX_NAME_BYTES}; use a hash of it instead`)
  return name
}
