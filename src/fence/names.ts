import { createHash } from 'node:crypto'

/** As wide as the column, and below every index limit. */
const MOST_KEY_CHARACTERS = 255

/** A name in visible ASCII without blanks or commas, for headers and indexed columns. `decodeURIComponent` gives it back. */
export function encodeName(name: string): string {
  return encodeURIComponent(name).replaceAll('%3A', ':').replaceAll('%2F', '/')
}

/**
 * The name as the key of a table: the same text for the same name whatever the collation, and short enough for every index.
 * A hash cannot be taken for a name: there a percent sign is followed by two hexadecimal digits.
 */
export function nameKey(name: string): string {
  const encoded = encodeName(name)
  if (encoded.length <= MOST_KEY_CHARACTERS) return encoded
  return `%sha256:${createHash('sha256').update(name).digest('hex')}`
}
