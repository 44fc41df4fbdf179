/** Encoded as it is; checked first because `encodeURIComponent` is slow. */
const PLAIN = /^[\w-]*$/

/**
 * Any text as one part of a key or path: without slashes and dots, which separate the parts, and
 * never `.` or `..`.
 */
export function encode(text: string): string {
  if (PLAIN.test(text)) return text
  return encodeURIComponent(text).replaceAll('.', '%2E')
}

/** null: `encode` did not make it, so it is another application's. */
export function decode(name: string): string | null {
  if (!name.includes('%')) return name
  try {
    return decodeURIComponent(name)
  } catch {
    return null
  }
}
