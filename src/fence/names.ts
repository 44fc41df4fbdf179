import { createHash } from 'node:crypto'

/** The width of the column; below every index limit. */
const MOST_KEY_CHARACTERS = 255

/** A name in visible ASCII without blanks or commas. `decodeURIComponent` reverses it. */
export function encodeName(name: string): string {
  return encodeURIComponent(name).replaceAll('%3A', ':').replaceAll('%2F', '/')
}

/**
 * The name as a table key: independent of the collation, and short enough for every index. A hash
 * cannot look like a name, where two hexadecimal digits follow a percent sign.
 */
export function nameKey(name: string): string {
  const encoded = encodeName(name)
  if (encoded.length <= MOST_KEY_CHARACTERS) return encoded
  return `%sha256:${createHash('sha256').update(name).digest('hex')}`
}
