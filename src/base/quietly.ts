/**
 * Does something with a client of the caller's that nobody waits for, such as giving a connection back. Whether it throws, rejects or
 * returns nothing: it must not end the process.
 */
export function quietly(work: () => unknown): void {
  try {
    Promise.resolve(work()).catch(() => {})
  } catch {
    // Nobody waits for it.
  }
}
