/** Calls a listener. What it throws is its own bug and must not look like a fault of the connection: it surfaces as uncaught. */
export function tell<E>(listener: (event: E) => void, event: E): void {
  try {
    listener(event)
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
