import { type Channel, channel, type TracingChannel, tracingChannel } from 'node:diagnostics_channel'
import type { AcquireContext, HoldContext, PulseContext, RunContext } from './events.js'

// Held by this module: a channel that only its subscribers refer to could be collected.
export const acquireChannel = tracingChannel<unknown, AcquireContext>('holdfast:acquire')
export const holdChannel = tracingChannel<unknown, HoldContext>('holdfast:hold')
export const runChannel = tracingChannel<unknown, RunContext>('holdfast:run')
export const pulseChannel = tracingChannel<unknown, PulseContext>('holdfast:pulse')
/** Messages are `StoreFailure`. */
export const storeChannel: Channel = channel('holdfast:store')
/** Messages are `StaleFence`. */
export const fenceChannel: Channel = channel('holdfast:fence')

/** As `hasSubscribers` of the tracing channel, which Bun does not have. */
export function isWatched<C extends object>({
  start,
  end,
  asyncStart,
  asyncEnd,
  error,
}: TracingChannel<unknown, C>): boolean {
  return (
    start.hasSubscribers ||
    asyncEnd.hasSubscribers ||
    end.hasSubscribers ||
    asyncStart.hasSubscribers ||
    error.hasSubscribers
  )
}

/** Whether anybody wants to know of requests and what becomes of them. */
export function areRequestsWatched(): boolean {
  return isWatched(acquireChannel) || isWatched(holdChannel) || isWatched(runChannel)
}

export interface TraceEnd<T> {
  /** These set fields of the context before its end is published. */
  onValue?(value: T): void
  onError?(error: unknown): void
  /** The end of what gave a value is published. */
  afterValue?(value: T): void
}

/**
 * Publishes the beginning and the end of an operation as `tracePromise` does, also if it has ended
 * when the call returns: then all four moments come within the call. A value that is no promise
 * stays one.
 */
export function trace<C extends { error?: unknown }, T>(
  tracing: TracingChannel<unknown, C>,
  context: C,
  work: () => T | PromiseLike<T>,
  { onValue, onError, afterValue }: TraceEnd<T> = {},
): T | Promise<T> {
  const over = (): void => {
    tracing.asyncStart.publish(context)
    tracing.asyncEnd.publish(context)
  }
  const done = (value: T): T => {
    onValue?.(value)
    over()
    afterValue?.(value)
    return value
  }
  const failed = (error: unknown): void => {
    onError?.(error)
    context.error = error
    tracing.error.publish(context)
  }
  return tracing.start.runStores(context, () => {
    let result: T | PromiseLike<T>
    try {
      result = work()
    } catch (error) {
      failed(error)
      tracing.end.publish(context)
      over()
      throw error
    }
    tracing.end.publish(context)
    if (!isThenable(result)) return done(result)
    return Promise.resolve(result).then(done, (error) => {
      failed(error)
      over()
      throw error
    })
  })
}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function'
}
