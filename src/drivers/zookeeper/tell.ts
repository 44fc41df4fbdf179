/**
 * Calls a listener. What it throws is a bug of the caller and must not end the connection: it
 * becomes an uncaught exception.
 */
export function tell<E>(listener: (event: E) => void, event: E): void {
  try {
    listener(event)
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
