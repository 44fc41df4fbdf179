import { aborted, listenToAbort } from '../base/abort.js'
import { formatMs } from '../base/duration.js'
import type { Env } from '../base/env.js'
import { HoldfastError, withOwnStack } from '../base/errors.js'
import { nothing } from '../base/nothing.js'

export { aborted }

/** How long a caller waits. */
export interface Limits {
  /** 0: do not wait. Infinity: forever. */
  readonly waitMs: number
  readonly signal: AbortSignal | undefined
  /** It waits only if fewer than so many wait already. Left out: however many wait. */
  readonly maxWaiters?: number
  /**
   * If `waitMs` is 0: how long the caller waits for the answer. After that, a store that answers
   * earlier calls is busy, and the lock is not free.
   */
  readonly answerWithinMs?: number
  /** Called when the store has queued the claim. */
  readonly onWaiting?: () => void
}

/** The limits at `now` of a caller that must finish by `deadline`. */
export function limitsLeft(limits: Limits, deadline: number, now: number): Limits {
  return { ...limits, waitMs: Math.max(0, deadline - now) }
}

/** `holder`: a description of the holder, if known. */
export function acquireTimeout(resource: string, waitMs: number, holder?: string): HoldfastError {
  const what =
    waitMs === 0
      ? `'${resource}' is not free`
      : `'${resource}' could not be acquired within ${formatMs(waitMs)}`
  const who = holder === undefined ? '' : `: held by ${holder}`
  const message = `${what}${who}; wait longer, or see who holds it with locks.inspect() or holdfast ls`
  return new HoldfastError('ACQUIRE_TIMEOUT', message, { resource, retryable: true })
}

/** Too many wait already. */
export function lineFull(resource: string, maxWaiters: number): HoldfastError {
  const message = `'${resource}' has ${maxWaiters} waiting already (maxWaiters); try again later, or raise maxWaiters`
  return new HoldfastError('LINE_FULL', message, { resource, retryable: true })
}

/** What a caller without a hold waits for, as named in errors: the `latch` called `ready`. */
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

/** Calls `giveUp` once when a limit is reached. The returned function stops the watch. */
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

/** Waits within the limits until `done` settles, either way. */
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
