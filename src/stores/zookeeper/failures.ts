import { HoldfastError } from '../../base/errors.js'
import { ZooKeeperError, type ZooKeeperErrorCode } from '../../drivers/zookeeper/index.js'

const PASSING: ReadonlySet<ZooKeeperErrorCode> = new Set([
  'CONNECTION_LOSS',
  'REQUEST_TIMEOUT',
  'SESSION_EXPIRED',
  'SESSION_MOVED',
  // The session was given up; the next call opens another one.
  'CLOSED',
  'QUEUE_FULL',
  'THROTTLED',
])

const HINTS: Partial<Record<ZooKeeperErrorCode, string>> = {
  NO_AUTH: 'check the option auth, and the ACLs of the nodes above',
  AUTH_FAILED: 'check the option auth',
  NO_NODE: 'if the servers are given with a chroot, it has to exist',
  UNIMPLEMENTED: 'ZooKeeper 3.5 or later is needed',
}

/** A driver's error as the contract has it. */
export function storeFailure(error: unknown): unknown {
  if (!(error instanceof ZooKeeperError)) return error
  const retryable = PASSING.has(error.code)
  const hint = HINTS[error.code]
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : ''
  const message = `${error.message}${cause}${hint ? `; ${hint}` : ''}`
  return new HoldfastError('STORE_UNAVAILABLE', message, {
    store: 'zookeeper',
    cause: error,
    retryable,
  })
}

/** What was read has changed meanwhile, again and again. */
export function askAgain(message: string): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', message, { store: 'zookeeper', retryable: true })
}

export function closed(): HoldfastError {
  return new HoldfastError('CLOSED', 'This client was closed; make a new one', { store: 'zookeeper' })
}

export function hasCode(error: unknown, code: ZooKeeperErrorCode): boolean {
  return error instanceof ZooKeeperError && error.code === code
}

/** Whether it is unknown what became of a write. */
export function isUncertain(error: unknown): boolean {
  return error instanceof ZooKeeperError && error.maybeDone
}
