/**
 * Runs work whose outcome does not matter, such as returning a connection to the caller's pool. A
 * throw or a rejection must not end the process.
 */
export function quietly(work: () => unknown): void {
  try {
    Promise.resolve(work()).catch(() => {})
  } catch {
    // The outcome does not matter.
  }
}
