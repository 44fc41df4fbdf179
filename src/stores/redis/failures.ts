import type { HoldfastError } from '../../base/errors.js'
import { FENCE_LIMIT, failuresOf, messageOfError } from '../shared/failures.js'

/**
 * Failures that pass: the server starts, fails over, moves slots, is full, runs a script, or has
 * just become a replica.
 */
const TRANSIENT = [
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

const CODE =
  /^-?(?:ERR Error running script \(call to \S+\): )?(?:@user_script: ?\d+: )*-?([A-Z][A-Z0-9]+)(?: |$)/

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

export const { explain, outOfReach, closed } = failuresOf({
  store: 'redis',
  server: 'Redis',
  meaningOf(_error, message) {
    const code = codeOf(message)
    if (code === null) return null
    const advice = ADVICE[code]
    return {
      text: advice === undefined ? `Redis failed: ${message}` : `${advice} (${message})`,
      retryable: TRANSIENT.includes(code),
    }
  },
})

/**
 * A failure that a script reports for one of its calls. An error of Lua itself has no code, and
 * does not pass.
 */
export function explainReply(text: string): HoldfastError {
  return explain(new Error(replyCode(text) === null ? `ERR ${text}` : text))
}

/**
 * Whether a failure that a script reports means that a line is not one of ours: another type, or
 * text that makes Lua fail. A line without fences can be read.
 */
export function isUnreadable(text: string): boolean {
  if (text.includes(FENCE_LIMIT)) return false
  return replyCode(text) === 'WRONGTYPE' || /^user_script:\d+: /.test(text)
}

/** Whether the user lacks a permission: what a script may not do is told without the code. */
export function isForbidden(message: string): boolean {
  return message.includes("user executing the script can't") || replyCode(message) === 'NOPERM'
}

/** Whether the server takes no writes, because it follows another one. */
export function isReplica(error: unknown): boolean {
  return /READONLY|WAIT cannot be used with replica/.test(messageOfError(error))
}

/** Where the server tells what is wrong without the code for it, that code. */
function codeOf(message: string): string | null {
  if (isForbidden(message)) return 'NOPERM'
  return isReplica(message) ? 'READONLY' : replyCode(message)
}

/**
 * The code that a server's error begins with; null: the error is the client's own, so there was no
 * answer. Before version 7 the code stands behind the place in the script.
 */
function replyCode(message: string): string | null {
  return CODE.exec(message)?.[1] ?? null
}
