import { HoldfastError } from '../../base/errors.js'
import { EtcdError, type EtcdErrorCode } from '../../drivers/etcd/index.js'

const PASSING: ReadonlySet<EtcdErrorCode> = new Set([
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'CANCELLED',
  'UNKNOWN',
  // The lease has ended; the next call has a new one.
  'NOT_FOUND',
  'CLOSED',
])

const HINTS: Partial<Record<EtcdErrorCode, string>> = {
  PERMISSION_DENIED: 'the user needs read and write permission for the keys below the root',
  UNAUTHENTICATED: 'check the options username and password',
  UNIMPLEMENTED: 'etcd 3.4 or later is needed',
  RESOURCE_EXHAUSTED: 'the database of etcd may be full: compact and defragment it, then disarm the alarm',
}

/** The servers are behind with their work, which passes. */
const TOO_MANY = 'too many requests'

function hintOf({ message, code }: EtcdError): string | undefined {
  if (message.includes('authentication failed')) return HINTS.UNAUTHENTICATED
  return message.includes(TOO_MANY) ? undefined : HINTS[code]
}

/** A driver's error as the contract has it. */
export function storeFailure(error: unknown): unknown {
  if (!(error instanceof EtcdError)) return error
  const hint = hintOf(error)
  const message = `${error.message}${hint ? `; ${hint}` : ''}`
  const retryable = PASSING.has(error.code) || error.message.includes(TOO_MANY)
  return new HoldfastError('STORE_UNAVAILABLE', message, { store: 'etcd', cause: error, retryable })
}

export function closed(): HoldfastError {
  return new HoldfastError('CLOSED', 'This client was closed; make a new one', { store: 'etcd' })
}

/** Whether it is unknown what became of a write. */
export function isUncertain(error: unknown): boolean {
  return error instanceof EtcdError && error.maybeDone
}

/** The answer came too late, or tells of something that has changed meanwhile: ask again. */
export function askAgain(message: string): EtcdError {
  return new EtcdError('UNAVAILABLE', message)
}
