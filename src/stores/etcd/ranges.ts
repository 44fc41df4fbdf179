/** The first key after all that begin with `prefix`. */
export function prefixEnd(prefix: string): Uint8Array {
  const bytes = Buffer.from(prefix)
  const last = bytes.findLastIndex((byte) => byte < 0xff)
  // All keys: etcd's word for it.
  if (last < 0) return Buffer.from([0])
  bytes[last] = (bytes[last] ?? 0) + 1
  return bytes.subarray(0, last + 1)
}
