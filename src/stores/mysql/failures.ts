import { HoldfastError } from '../../base/errors.js'
import { failuresOf, messageOfError } from '../shared/failures.js'

// Numbers of the server's errors. A driver's own are strings, or with mariadb above 45000.
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
/** The server does not take writes, as after a failover: it was the primary. */
const READ_ONLY: readonly number[] = [1290, 1792, 1836]
/** Shutting down, KILL, idle for too long. */
const ENDED: readonly number[] = [1053, 1927, 4031]

/** Failures that pass. */
const TRANSIENT: Readonly<Record<number, string>> = {
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
  1142: 'The MySQL user lacks a right; docs/stores/mysql.md lists those that are needed, and `holdfast schema mysql` prints the schema for a user who may create it',
  1227: 'The MySQL user lacks a right; docs/stores/mysql.md lists those that are needed',
  1370: 'The MySQL user lacks a right; docs/stores/mysql.md lists those that are needed, and `holdfast schema mysql` prints the schema for a user who may create it',
  1665: 'With binlog_format = STATEMENT the server cannot log READ COMMITTED; set it to ROW or MIXED',
}

/** Whether the server rolled the call back in favour of another one: it can be repeated at once. */
export function isCollision(error: unknown): boolean {
  const number = numberOf(error)
  return number === DEADLOCK || number === LOCK_WAIT_TIMEOUT
}

/** Whether the connection has ended: by the driver, an operator, or a shutdown of the server. */
export function isConnectionOver(error: unknown): boolean {
  const number = numberOf(error)
  return number === null || ENDED.includes(number)
}

/** Whether the server has rolled back the whole transaction because of a deadlock. */
export function isDeadlock(error: unknown): boolean {
  return numberOf(error) === DEADLOCK
}

/** Whether another transaction kept the row locked for longer than the statement may wait. */
export function isBusy(error: unknown): boolean {
  const number = numberOf(error)
  return number === LOCK_WAIT_TIMEOUT || number === NO_WAIT
}

/** Whether the row has changed since the snapshot (innodb_snapshot_isolation of MariaDB 11). */
export function isRecordChanged(error: unknown): boolean {
  return numberOf(error) === RECORD_CHANGED
}

/**
 * Whether a savepoint has ended with its transaction. MySQL has one number for all missing names.
 */
export function isSavepointMissing(error: unknown): boolean {
  return numberOf(error) === NO_SUCH_ROUTINE
}

/** Whether an operator or a time limit has ended the statement. */
export function isInterrupted(error: unknown): boolean {
  return INTERRUPTED.includes(numberOf(error) ?? 0)
}

/**
 * Whether the connection must not be used again, although it stands. No handler of a routine runs
 * for an interrupted statement, so its transaction is still open. A server that has become
 * read-only is no longer the primary: a new connection may reach the server that is.
 */
export function isSpoiled(error: unknown): boolean {
  return isInterrupted(error) || READ_ONLY.includes(numberOf(error) ?? 0)
}

/** Whether a table or routine of the schema is missing. */
export function isSchemaMissing(error: unknown): boolean {
  const number = numberOf(error)
  return number === NO_SUCH_TABLE || number === NO_SUCH_ROUTINE
}

/** Whether another process has created that routine. */
export function isMadeAlready(error: unknown): boolean {
  return numberOf(error) === ROUTINE_EXISTS
}

export const { explain, outOfReach, closed } = failuresOf({
  store: 'mysql',
  server: 'MySQL',
  messageOf,
  meaningOf(error, message) {
    const number = numberOf(error)
    if (number === null) return null
    const transient = TRANSIENT[number]
    const advice = transient ?? ADVICE[number] ?? 'MySQL failed'
    return { text: `${advice} (${number}: ${message})`, retryable: transient !== undefined }
  },
})

/** A connection that does not commit by itself would keep a line locked. */
export function notCommitting(): HoldfastError {
  const message =
    'autocommit is off for the connections of this pool, so other clients would not see what Holdfast writes; give it a pool with autocommit on'
  return new HoldfastError('UNSUPPORTED', message, { store: 'mysql' })
}

/** null: the error is the driver's own, so the server has not answered. */
function numberOf(error: unknown): number | null {
  const { errno, sqlState } = error as { errno?: unknown; sqlState?: unknown }
  if (typeof errno !== 'number' || errno <= 0 || errno >= DRIVERS_OWN) return null
  return typeof sqlState === 'string' ? errno : null
}

/** mariadb puts the statement into the message. */
function messageOf(error: unknown): string {
  const { sqlMessage } = Object(error) as { sqlMessage?: unknown }
  return typeof sqlMessage === 'string' ? sqlMessage : messageOfError(error)
}
