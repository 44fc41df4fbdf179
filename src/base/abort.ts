import { setMaxListeners } from 'node:events'
import { HoldfastError, invalid } from './errors.js'

export function aborted(resource: string, signal: AbortSignal | undefined): HoldfastError {
  const message = `Waiting for '${resource}' was aborted`
  return new HoldfastError('ABORTED', message, { resource, cause: signal?.reason })
}

export function checkSignal(signal: unknown): AbortSignal | undefined {
  if (signal === undefined || signal instanceof AbortSignal) return signal
  throw invalid('signal must be an AbortSignal')
}

/** Calls `onAbort` if the signal aborts. The returned function removes the listener. */
export function listenToAbort(signal: AbortSignal, onAbort: () => void): () => void {
  // Many waiters may share one signal: Node should not warn of a leak at the eleventh.
  setMaxListeners(0, signal)
  signal.addEventListener('abort', onAbort, { once: true })
  return () => signal.removeEventListener('abort', onAbort)
}

/**
 * A signal that aborts with the first of these, until it is stopped. Not `AbortSignal.any`: Node 20
 * keeps what listens to its signals until they abort, and something of them in each of these.
 */
export function firstOf(signals: readonly AbortSignal[]): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController()
  const stops = signals.map((signal) => {
    const onAbort = (): void => controller.abort(signal.reason)
    if (signal.aborted) onAbort()
    return listenToAbort(signal, onAbort)
  })
  return {
    signal: controller.signal,
    stop() {
      for (const stop of stops) stop()
    },
  }
}
