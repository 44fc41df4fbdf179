import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { deferred } from '../../base/deferred.js'
import type { Mutex } from '../../primitives/mutex.js'

/**
 * Runs that each start the next one from their inside, the way a queue of jobs does. Resolves
 * inside the last one's flow.
 */
export function chain(door: Mutex, length: number, traces: WeakRef<object>[]): Promise<void> {
  const end = deferred<void>()
  const next = (left: number): void => {
    const { signal } = new AbortController()
    traces.push(new WeakRef(signal))
    const work = (): void => void setImmediate(() => (left > 0 ? next(left - 1) : stay(end.resolve)))
    door.run(work, { signal }).catch(end.reject)
  }
  next(length)
  return end.promise
}

/** Keeps the present flow alive for a while, with whatever hangs on it. */
function stay(then: () => void): void {
  const timer = setInterval(() => {}, 1000)
  timer.unref()
  then()
}

export function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
}
