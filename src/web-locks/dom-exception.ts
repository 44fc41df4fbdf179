import { HoldfastError } from '../base/errors.js'

// Older versions of Node's types do not declare it.
declare const DOMException: new (message: string, options: { name: string; cause?: unknown }) => Error

export function notSupported(message: string): Error {
  return new DOMException(message, { name: 'NotSupportedError' })
}

/** A closed client corresponds to a document that is not fully active in a browser. */
export function closedClient(cause: unknown): Error {
  const message = 'The Holdfast client of this LockManager is closed; make a new one to go on'
  return new DOMException(message, { name: 'InvalidStateError', cause })
}

/** For a lock that was lost while its callback ran. */
export function lockLost(name: string, cause: unknown): Error {
  const isClosed = cause instanceof HoldfastError && isClosing(cause.cause)
  const what = isClosed ? 'was released, because its client was closed,' : 'was stolen or lost'
  const message = `The lock '${name}' ${what} before its callback was done`
  return new DOMException(message, { name: 'AbortError', cause })
}

function isClosing(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'CLOSED'
}
