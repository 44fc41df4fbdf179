import { HoldfastError } from '../../base/errors.js'

const STORE = 'mysql'

/** The numbers of the server's errors; those of a driver's own are strings, or above 45000 with mariadb. */
const DEADLOCK = 1213
const LOCK_WAIT_TIMEOUT = 1205
const NO_WAIT = 3572
const RECORD_CHANGED = 1020
const NO_SUCH_TABLE = 1146
const NO_SUCH_ROUTINE = 1305
const ROUTINE_EXISTS = 1304
const DRIVERS_OWN = 45_000
/** KILL QUERY, and time limits for statements. */
const INTERRUPTED: readonly number[] = [1317, 1969, 3024]
/** Shutting down, KILL, idle for too long. */
const ENDED: readonly number[] = [1053, 1927, 4031]

/** The server says that it cannot just now. */
const PASSING: Readonly<Record<number, string>> = {
  [DEADLOCK]: 'MySQL reported a deadlock again and again; something else locks the tables of Holdfast',
  [LOCK_WAIT_TIMEOUT]: 'A line was locked for too long; something else locks the tables of Holdfast',
  1021: 'The disk of the MySQL server is full; free some space',
  1040: 'The MySQL server has too many connections; raise max_connections, or make pools smaller',
  1041: 'The MySQL server is out of memory',
  1053: 'The MySQL server is shutting down',
  1114: 'The disk or tablespace of the MySQL server is full; free some space',
  1158: 'The connection to MySQL broke',
  1159: 'The connection to MySQL broke',
  1160: 'The connection to MySQL broke',
  1161: 'The connection to MySQL broke',
  1203: 'The MySQL user has too many connections; raise max_user_connections, or make pools smaller',
  1206: 'The lock table of the MySQL server is full',
  1290: 'This MySQL server is read-only; connect to the primary',
  1317: 'The statement was interrupted (KILL)',
  1792: 'This MySQL server is read-only; connect to the primary',
  1836: 'This MySQL server is read-only; connect to the primary',
  1927: 'The connection was ended by an operator (KILL)',
  3024: 'The statement was interrupted by a time limit of the server',
  1969: 'The statement was interrupted by a time limit of the server',
}

const ADVICE: Readonly<Record<number, string>> = {
  1044: 'The MySQL user may not use this database',
  1045: 'MySQL refused the user name or password',
  1046: 'The pool names no database; give it one, in which Holdfast keeps its tables',
  1049: 'There is no such database; create it, or correct the URL',
  1142: 'The MySQL user lacks a right; docs/stores/mysql.md lists those that are needed, and `holdfast schema mysql` prints the schema for whoever may create it',
  1227: 'The MySQL user lacks a right; docs/stores/mysql.md lists those that are needed',
  1370: 'The MySQL user lacks a right; docs/stores/mysql.md lists those that are needed, and `holdfast schema mysql` prints the schema for whoever may create it',
  1665: 'With binlog_format = STATEMENT the server cannot log READ COMMITTED; set it to ROW or MIXED',
}

/** Whether nothing has happened and the same call may well succeed at once: the server has undone it for another's sake. */
export function isCollision(error: unknown): boolean {
  const number = numberOf(error)
  return number === DEADLOCK || number === LOCK_WAIT_TIMEOUT
}

/** Whether the connection is no more: the driver says so, or the server, when it was ended by an operator or is shutting down. */
export function isConnectionOver(error: unknown): boolean {
  const number = numberOf(error)
  return number === null || ENDED.includes(number)
}

/** Whether the server has undone the whole transaction, because it and another one waited for each other. */
export function isDeadlock(error: unknown): boolean {
  return numberOf(error) === DEADLOCK
}

/** Whether somebody else has kept the row locked for longer than the statement was to wait. */
export function isBusy(error: unknown): boolean {
  const number = numberOf(error)
  return number === LOCK_WAIT_TIMEOUT || number === NO_WAIT
}

/** Whether the row is another than the transaction has seen (innodb_snapshot_isolation of MariaDB 11). */
export function isRecordChanged(error: unknown): boolean {
  return numberOf(error) === RECORD_CHANGED
}

/** Whether a savepoint is gone, as it is where the transaction has ended. MySQL has one number for all that is named and missing. */
export function isSavepointMissing(error: unknown): boolean {
  return numberOf(error) === NO_SUCH_ROUTINE
}

/** Whether the statement was ended from outside, or by a time limit. */
export function isInterrupted(error: unknown): boolean {
  return INTERRUPTED.includes(numberOf(error) ?? 0)
}

/** Whether a part of the schema is not there. */
export function isSchemaMissing(error: unknown): boolean {
  const number = numberOf(error)
  return number === NO_SUCH_TABLE || number === NO_SUCH_ROUTINE
}

/** Whether another one has made that part of the schema. */
export function isMadeAlready(error: unknown): boolean {
  return numberOf(error) === ROUTINE_EXISTS
}

/** A driver's or the server's error in our words. Ours pass unchanged. */
export function explain(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error
  const message = messageOf(error)
  if (message.includes('HOLDFAST_FENCE_LIMIT'))
    return new HoldfastError(
      'UNSUPPORTED',
      'The fence counter has passed 2^53; set the clock of the MySQL server right and start with a new space',
      { store: STORE },
    )
  const number = numberOf(error)
  if (number === null) return outOfReach(message, error)
  const passing = PASSING[number]
  const advice = passing ?? ADVICE[number] ?? 'MySQL failed'
  return new HoldfastError('STORE_UNAVAILABLE', `${advice} (${number}: ${message})`, {
    store: STORE,
    cause: bare(error, message),
    retryable: passing !== undefined,
  })
}

export function outOfReach(message: string, cause?: unknown): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', `MySQL cannot be reached: ${message}`, {
    store: STORE,
    cause: cause === undefined ? undefined : bare(cause, message),
    retryable: true,
  })
}

/** One that does not commit by itself would keep a line locked until somebody does. */
export function notCommitting(): HoldfastError {
  const message =
    'autocommit is off for the connections of this pool, so nothing of what Holdfast does would be seen by others; give it a pool with autocommit on'
  return new HoldfastError('UNSUPPORTED', message, { store: STORE })
}

export function closed(): HoldfastError {
  return new HoldfastError('CLOSED', 'This connection to the MySQL store is closed', { store: STORE })
}

/** Drivers put the statement on their errors, and mariadb into the message: long, and nobody's business. */
function bare(error: unknown, message: string): Error {
  const copy = new Error(message)
  if (error instanceof Error && error.stack !== undefined)
    copy.stack = error.stack.replace(error.message, message)
  return copy
}

/** null: the error is the driver's own, so there was no answer of the server. */
function numberOf(error: unknown): number | null {
  const { errno, sqlState } = error as { errno?: unknown; sqlState?: unknown }
  if (typeof errno !== 'number' || errno <= 0 || errno >= DRIVERS_OWN) return null
  return typeof sqlState === 'string' ? errno : null
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // A failed connection to several addresses of one name has its reasons inside, and no message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ')
  const { sqlMessage } = error as { sqlMessage?: unknown }
  return typeof sqlMessage === 'string' ? sqlMessage : error.message
}
