import { aborted, listenToAbort } from '../base/abort.js'
import { formatMs } from '../base/duration.js'
import type { Env } from '../base/env.js'
import { HoldfastError, withOwnStack } from '../base/errors.js'
import { nothing } from '../base/nothing.js'

export { aborted }

/** How long a caller waits. */
export interface Limits {
  /** 0: do not wait at all. Infinity: for ever. */
  readonly waitMs: number
  readonly signal: AbortSignal | undefined
  /** For a caller that does not wait: how long the store may take to say so, where that is less than its time-out. */
  readonly answerWithinMs?: number
  /** Told when the store has answered that the claim waits in line. */
  readonly onWaiting?: () => void
}

/** What is left of the limits at `now` for a caller that wants to be done by `deadline`. */
export function limitsLeft(limits: Limits, deadline: number, now: number): Limits {
  return { ...limits, waitMs: Math.max(0, deadline - now) }
}

/** `holder`: who holds it, for people, where that is known. */
export function acquireTimeout(resource: string, waitMs: number, holder?: string): HoldfastError {
  const what =
    waitMs === 0
      ? `'${resource}' is not free`
      : `'${resource}' could not be acquired within ${formatMs(waitMs)}`
  const who = holder === undefined ? '' : `: held by ${holder}`
  const message = `${what}${who}; wait longer, or see who holds it with inspect()`
  return new HoldfastError('ACQUIRE_TIMEOUT', message, { resource, retryable: true })
}

/** What is waited for where there is nothing to hold, for errors: the `latch` of the name `ready`. */
export interface Awaited {
  readonly kind: string
  readonly name: string
}

export function waitTimeout({ kind, name }: Awaited, waitMs: number): HoldfastError {
  const message =
    waitMs === 0
      ? `The ${kind} '${name}' is not open yet`
      : `The ${kind} '${name}' did not open within ${formatMs(waitMs)}; wait longer, or see who is missing`
  return new HoldfastError('ACQUIRE_TIMEOUT', message, { resource: name, retryable: true })
}

/** Calls `giveUp` once if the limits are reached first. The returned function ends the watch. */
export function watchLimits(
  env: Env,
  limits: Limits,
  resource: string,
  giveUp: (error: HoldfastError) => void,
): () => void {
  const { signal, waitMs } = limits
  const isTimed = waitMs > 0 && waitMs !== Infinity
  if (!signal && !isTimed) return nothing
  const onAbort = (): void => giveUp(aborted(resource, signal))
  const unlisten = signal ? listenToAbort(signal, onAbort) : nothing
  const stopTimer = isTimed
    ? env.timer(waitMs, () => giveUp(acquireTimeout(resource, waitMs)), { keepAlive: true })
    : nothing
  return () => {
    stopTimer()
    unlisten()
  }
}

/** Waits for something inside this process, whose outcome does not matter, no longer than the limits say. */
export async function waitLocally(
  env: Env,
  done: Promise<unknown>,
  limits: Limits,
  resource: string,
): Promise<void> {
  const waiting = new Promise<void>((resolve, reject) => {
    const stop = watchLimits(env, limits, resource, (error) => {
      stop()
      reject(error)
    })
    const finish = (): void => {
      stop()
      resolve()
    }
    done.then(finish, finish)
  })
  try {
    await waiting
  } catch (error) {
    throw withOwnStack(error)
  }
}
