import { listenToAbort } from '../../base/abort.js'
import { backoffMs } from '../../base/backoff.js'
import type { Env } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'
import { nothing } from '../../base/nothing.js'
import { explain, outOfReach } from '../../stores/redis/failures.js'
import { Pause } from './pause.js'

const FIRST_RETRY_MS = 20
const LONGEST_RETRY_MS = 500

/** Rejects if there is no answer within `ms`, or when the signal aborts. */
export function answered<T>(
  env: Env,
  ms: number,
  call: Promise<T>,
  signal?: AbortSignal | undefined,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      end()
      reject(error)
    }
    const onLate = (): void => fail(outOfReach(`no answer within ${Math.round(ms)} ms`))
    const cancel = env.timer(ms, onLate, { keepAlive: true })
    const unlisten = signal ? listenToAbort(signal, () => fail(signal.reason)) : nothing
    const end = (): void => {
      cancel()
      unlisten()
    }
    call.then((value) => {
      end()
      resolve(value)
    }, fail)
  })
}

/** The pause before attempt number `attempt` after failures. */
export function retryMs(env: Env, attempt: number): number {
  return backoffMs(attempt, env.random(), FIRST_RETRY_MS, LONGEST_RETRY_MS)
}

/**
 * Repeats a call until it is answered. Rejects with its last failure at the deadline, or at once if
 * another attempt cannot help.
 */
export async function untilAnswered<T>(
  env: Env,
  deadline: number,
  limitMs: number,
  call: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await answered(env, Math.min(limitMs, Math.max(1, deadline - env.now())), call())
    } catch (error) {
      const failure = explainPeer(error)
      if (!failure.retryable || env.now() >= deadline) throw failure
      await new Pause(env).last(Math.min(retryMs(env, attempt), deadline - env.now()))
    }
  }
}

/** As `explain`, for keys that others write, too. */
export function explainPeer(error: unknown): HoldfastError {
  const failure = explain(error)
  const cause = failure.cause
  if (!(cause instanceof Error) || !cause.message.includes('WRONGTYPE')) return failure
  const message =
    'The key of this lock holds something of another type; another program uses the name, or for another kind of lock'
  return new HoldfastError('UNSUPPORTED', message, { store: 'redis', cause })
}
