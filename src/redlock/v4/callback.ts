/** A callback in the style of Node. */
// biome-ignore lint/suspicious/noExplicitAny: callers declare the error as they like
export type Callback<T> = (error: any, value?: T) => void

/** The promise itself; a callback, where there is one, is told the same. */
export function withCallback<T>(promise: Promise<T>, callback: Callback<T> | undefined): Promise<T> {
  if (typeof callback !== 'function') return promise
  // What the callback throws is not an outcome of the lock: it goes to the process.
  promise.then(
    (value) => queueMicrotask(() => (value === undefined ? callback(null) : callback(null, value))),
    (error) => queueMicrotask(() => callback(error)),
  )
  return promise
}
