import { type Duration, toMs } from '../base/duration.js'
import { HoldfastError } from '../base/errors.js'

/** The least time that the pool and the server get to answer, however short the `wait` is. */
export const ANSWER_MS = 2000

/** A pool whose connections are all lent and a server that accepts none look the same from here. */
export function noConnection(store: string, withinMs: number): HoldfastError {
  const message = `No connection to the database within ${Math.round(withinMs)} ms: all connections of the pool are in use, or the server cannot be reached; use a larger pool, or return connections sooner`
  return new HoldfastError('STORE_UNAVAILABLE', message, { store, retryable: true })
}

/** The server has answered before, and then no more. */
export function noAnswer(store: string): HoldfastError {
  const message = `The database did not answer within \`wait\` and ${ANSWER_MS} ms; nothing was done`
  return new HoldfastError('STORE_UNAVAILABLE', message, { store, retryable: true })
}

/** The option `wait` in milliseconds; Infinity if it is left out. */
export function readWait(wait: Duration = Infinity): number {
  return toMs(wait, { name: 'wait', minMs: 0, infinite: true })
}
