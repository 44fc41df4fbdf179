import { HoldfastError } from '../base/errors.js'

/** A hold of any of these locks. */
interface ReleasableHold {
  readonly resource: string | bigint
  readonly signal: AbortSignal
  /** Resolves with whether the lock was still held. */
  release(): Promise<boolean>
}

/**
 * Runs work with a lock that is held, and releases it. Rejects if the lock was lost before that,
 * even where only the release shows it.
 */
export async function runWith<T>(hold: ReleasableHold, store: string, work: () => Promise<T>): Promise<T> {
  let result: T
  let wasHeld: boolean
  try {
    result = await work()
    hold.signal.throwIfAborted()
  } finally {
    // A failed release hides neither the value nor the error of the work.
    wasHeld = await hold.release().catch(() => true)
  }
  if (!wasHeld) throw lostUnnoticed(String(hold.resource), store)
  return result
}

function lostUnnoticed(resource: string, store: string): HoldfastError {
  const message = `The lock '${resource}' was lost before the work was done: the server no longer had it at the release, or its session had ended`
  return new HoldfastError('HOLD_LOST', message, { resource, store })
}
