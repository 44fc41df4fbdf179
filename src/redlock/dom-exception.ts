// Older versions of Node's types do not declare it.
declare const DOMException: new (message: string, options: { name: string; cause?: unknown }) => Error

/** As an `abort()` without a reason would make it, but it tells why. */
export function abortReason(error: Error): Error {
  return new DOMException(error.message, { name: 'AbortError', cause: error })
}
