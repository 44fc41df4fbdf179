import { HoldfastError } from '../../base/errors.js'

/** What scripts and routines raise when no fence is left below 2^53. */
export const FENCE_LIMIT = 'HOLDFAST_FENCE_LIMIT'

/** How a server's errors are read. */
export interface ServerErrors {
  /** Names the store in errors: `postgres`. */
  readonly store: string
  /** Names the server in messages: `PostgreSQL`. */
  readonly server: string
  /** The driver's text for an error. Left out: the message of the error. */
  messageOf?(error: unknown): string
  /**
   * What the server's answer means; null: the error is the driver's own, so there was no answer.
   */
  meaningOf(error: unknown, message: string): ServerAnswer | null
}

interface ServerAnswer {
  /** For people: what has failed, and what to do about it. */
  readonly text: string
  /** Whether the same call may succeed later. */
  readonly retryable: boolean
}

export interface Failures {
  /** An error of the driver or the server as a HoldfastError. Ours pass unchanged. */
  explain(error: unknown): HoldfastError
  /** There was no answer; the call may be made again. */
  outOfReach(message: string, cause?: unknown): HoldfastError
  /** The client was closed before the call. */
  closed(): HoldfastError
}

export function failuresOf({ store, server, messageOf = messageOfError, meaningOf }: ServerErrors): Failures {
  const outOfReach = (message: string, cause?: unknown): HoldfastError =>
    new HoldfastError('STORE_UNAVAILABLE', `${server} cannot be reached: ${message}`, {
      store,
      cause: cause === undefined ? undefined : withoutStatement(cause, message),
      retryable: true,
    })
  const explain = (error: unknown): HoldfastError => {
    if (error instanceof HoldfastError) return error
    const message = messageOf(error)
    if (message.includes(FENCE_LIMIT)) {
      const text = `The fence counter has passed 2^53; set the clock of the ${server} server right and start with a new space`
      return new HoldfastError('UNSUPPORTED', text, { store })
    }
    const meaning = meaningOf(error, message)
    if (!meaning) return outOfReach(message, error)
    const { text, retryable } = meaning
    const cause = withoutStatement(error, message)
    return new HoldfastError('STORE_UNAVAILABLE', text, { store, cause, retryable })
  }
  const closed = (): HoldfastError =>
    new HoldfastError('CLOSED', `This connection to the ${server} store is closed`, { store })
  return { explain, outOfReach, closed }
}

export function messageOfError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // A failed connection to several addresses of one name has its reasons inside, and no message.
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map(messageOfError).join('; ')
  // A command that node-redis could not send in time has only a name.
  return error.message === '' ? error.constructor.name : error.message
}

/** Drivers put the statement and its values on their errors, and they may hold secrets. */
function withoutStatement(error: unknown, message: string): Error {
  const copy = new Error(message)
  if (error instanceof Error && error.stack !== undefined)
    copy.stack = error.message === '' ? error.stack : error.stack.replace(error.message, () => message)
  return copy
}
