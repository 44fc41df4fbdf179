import { checkSignal } from '../../base/abort.js'
import type { Duration } from '../../base/duration.js'
import { invalid } from '../../base/errors.js'
import { checkName } from '../../base/names.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import { readWait } from '../limits.js'

const ISOLATIONS = ['read committed', 'repeatable read', 'serializable'] as const

export type Isolation = (typeof ISOLATIONS)[number]

/** The options of `run` of a transaction lock. */
export interface TransactionLockOptions {
  /** How long to wait for the lock; 0 takes it only if it is free. No limit by default. */
  wait?: Duration | undefined
  /**
   * Ends the wait with ABORTED when it aborts. No effect once the lock is held. The connection is
   * back in the pool within a second.
   */
  signal?: AbortSignal | undefined
  /**
   * The isolation level of the transaction; by default that of the connection. A nested run has the
   * level of the outermost one.
   */
  isolation?: 'read committed' | 'repeatable read' | 'serializable' | undefined
}

const TRANSACTION_LOCK_OPTIONS: OptionNames<TransactionLockOptions> = {
  wait: true,
  signal: true,
  isolation: true,
}

/** What a caller of `run` asks for, checked. */
export interface TransactionLockRequest {
  readonly name: string
  readonly waitMs: number
  readonly signal: AbortSignal | undefined
  readonly isolation: Isolation | undefined
}

export function readRequest(name: string, options: TransactionLockOptions): TransactionLockRequest {
  checkName(name, 'The name of a lock')
  const { wait, signal, isolation } = checkOptions(options, TRANSACTION_LOCK_OPTIONS, "{ wait: '5s' }")
  if (isolation !== undefined && !ISOLATIONS.includes(isolation))
    throw invalid(`isolation is '${isolation}', but must be one of ${ISOLATIONS.join(', ')}`)
  return { name, waitMs: readWait(wait), signal: checkSignal(signal), isolation }
}
