/**
 * A stream of numbers from 0 up to, but not including, 1, always the same for the same seed and
 * name.
 */
export function randomStream(seed: number, name: string): () => number {
  let state = hash(`${seed}/${name}`)
  // mulberry32: small, fast, and good enough to choose faults by.
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (const char of text) value = Math.imul(value ^ (char.codePointAt(0) ?? 0), 0x01000193)
  return value
}
