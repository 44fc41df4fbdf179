import { HoldfastError } from '../../base/errors.js'

const STORE = 'redis'

/** The server says that it cannot just now: starting, failing over, moving slots, full, busy with a script, or a replica since a moment ago. */
const PASSING = [
  'LOADING',
  'CLUSTERDOWN',
  'MASTERDOWN',
  'TRYAGAIN',
  'MOVED',
  'ASK',
  'READONLY',
  'BUSY',
  'OOM',
  'MISCONF',
  'NOREPLICAS',
  'UNBLOCKED',
]

const ADVICE: Readonly<Record<string, string>> = {
  NOAUTH: 'Redis wants a password; give it in the URL or to your client',
  WRONGPASS: 'Redis refused the user name or password',
  NOPERM: 'The Redis user lacks a permission; docs/stores/redis.md lists those that are needed',
  WRONGTYPE:
    'A key of Holdfast holds something else in this database; give Holdfast a prefix or database of its own',
  OOM: 'Redis is out of memory; raise maxmemory or free some',
  READONLY: 'This Redis server is a replica; connect to the master, or by way of Sentinel or Cluster',
  MISCONF: 'Redis refuses writes because it cannot save to disk; see its log',
}

/** A client's or the server's error in our words. Ours pass unchanged. */
export function explain(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error
  const message = messageOf(error)
  if (message.includes('HOLDFAST_FENCE_LIMIT'))
    return new HoldfastError(
      'UNSUPPORTED',
      'The fence counter has passed 2^53; set the clock of the Redis server right and start with a new space',
      { store: STORE },
    )
  const code = isForbidden(message) ? 'NOPERM' : replyCode(message)
  if (code === null) return outOfReach(message, error)
  const advice = ADVICE[code]
  const text = advice === undefined ? `Redis failed: ${message}` : `${advice} (${message})`
  const retryable = PASSING.includes(code)
  return new HoldfastError('STORE_UNAVAILABLE', text, {
    store: STORE,
    cause: bare(error, message),
    retryable,
  })
}

/** What a script says that went wrong with one of its calls. An error of Lua itself has no code, and does not pass by itself. */
export function explainReply(text: string): HoldfastError {
  return explain(new Error(replyCode(text) === null ? `ERR ${text}` : text))
}

/** Clients put the command on their errors, and a command may hold the password. */
function bare(error: unknown, message: string): Error {
  const copy = new Error(message)
  if (error instanceof Error && error.stack !== undefined) copy.stack = error.stack
  return copy
}

export function outOfReach(message: string, cause?: unknown): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', `Redis cannot be reached: ${message}`, {
    store: STORE,
    cause: cause === undefined ? undefined : bare(cause, message),
    retryable: true,
  })
}

export function closed(): HoldfastError {
  return new HoldfastError('CLOSED', 'This connection to the Redis store is closed', { store: STORE })
}

/** Whether the user lacks a permission: what a script may not do is told without the code. */
export function isForbidden(message: string): boolean {
  return message.includes("user executing the script can't") || replyCode(message) === 'NOPERM'
}

/** Whether the server takes no writes, because it follows another one. */
export function isReplica(error: unknown): boolean {
  return messageOf(error).includes('READONLY')
}

/** The code that a server's error begins with; null: the error is the client's own, so there was no answer. */
function replyCode(message: string): string | null {
  return /^(?:-)?([A-Z][A-Z0-9]+)(?: |$)/.exec(message)?.[1] ?? null
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // A failed connection to several addresses of one name has its reasons inside, and no message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ')
  return error.message
}
