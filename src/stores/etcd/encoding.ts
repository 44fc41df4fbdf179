/** Encoded as it is; checked first because `encodeURIComponent` is slow. */
const PLAIN = /^[\w-]*$/

/** Any text as one part of a key: without slashes and dots, which separate the parts. */
export function encode(text: string): string {
  if (PLAIN.test(text)) return text
  return encodeURIComponent(text).replaceAll('.', '%2E')
}

/** null: `encode` did not make it. */
export function decode(name: string): string | null {
  if (!name.includes('%')) return name
  try {
    return decodeURIComponent(name)
  } catch {
    return null
  }
}

/** The first key after all that begin with `prefix`. */
export function prefixEnd(prefix: string): Uint8Array {
  const bytes = Buffer.from(prefix)
  const last = bytes.findLastIndex((byte) => byte < 0xff)
  // All keys: etcd's word for it.
  if (last < 0) return Buffer.from([0])
  bytes[last] = (bytes[last] ?? 0) + 1
  return bytes.subarray(0, last + 1)
}
