import { HoldfastError } from '../../base/errors.js'

const STORE = 'postgres'

/** The transaction was undone to let another one go on: it may be made again at once. https://www.postgresql.org/docs/current/errcodes-appendix.html */
const UNDONE = ['40001', '40P01']
/** A routine, table, type or schema is not there. */
const MISSING = ['42883', '42P01', '3F000', '42704']
/** A prepared statement that this session does not have, or has already. */
const UNPREPARED = ['26000', '42P05']
/** By class or by code: the server says that it cannot just now. */
const PASSING = ['08', '40', '53', '55P03', '57', '58', '25006', 'XX000']

const ADVICE: Readonly<Record<string, string>> = {
  '25006': 'This PostgreSQL server is read-only: a standby, or set so; connect to the primary',
  '28000': 'PostgreSQL refused the user; see pg_hba.conf',
  '28P01': 'PostgreSQL refused the user name or password',
  '3D000': 'There is no such database; create it, or correct the URL',
  '42501':
    'The PostgreSQL user lacks a right; let an owner run the output of `holdfast schema postgres`, and grant what docs/stores/postgres.md lists',
  '53100': 'The disk of the PostgreSQL server is full; free some space',
  '53200': 'The PostgreSQL server is out of memory',
  '53300': 'The PostgreSQL server has no connection left; raise max_connections or make pools smaller',
  '57P03': 'The PostgreSQL server is starting or shutting down',
}

/** A driver's or the server's error in our words. Ours pass unchanged. */
export function explain(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error
  const message = messageOf(error)
  if (message.includes('HOLDFAST_FENCE_LIMIT'))
    return new HoldfastError(
      'UNSUPPORTED',
      'The fence counter has passed 2^53; set the clock of the PostgreSQL server right and start with a new space',
      { store: STORE },
    )
  const code = sqlState(error)
  if (code === null) return outOfReach(message, error)
  const advice = ADVICE[code]
  const text = advice === undefined ? `PostgreSQL failed: ${message}` : `${advice} (${message})`
  return new HoldfastError('STORE_UNAVAILABLE', text, {
    store: STORE,
    cause: bare(error, message),
    retryable: PASSING.some((each) => code.startsWith(each)),
  })
}

export function outOfReach(message: string, cause?: unknown): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', `PostgreSQL cannot be reached: ${message}`, {
    store: STORE,
    cause: cause === undefined ? undefined : bare(cause, message),
    retryable: true,
  })
}

export function closed(): HoldfastError {
  return new HoldfastError('CLOSED', 'This connection to the PostgreSQL store is closed', { store: STORE })
}

export function isUndone(error: unknown): boolean {
  return UNDONE.includes(sqlState(error) ?? '')
}

/** It was not to be had in the time that was given. */
export function isBusy(error: unknown): boolean {
  return sqlState(error) === '55P03'
}

/** The statement was ended from outside, or by a time limit. */
export function isCanceled(error: unknown): boolean {
  return sqlState(error) === '57014'
}

export function isUnprepared(error: unknown): boolean {
  return UNPREPARED.includes(sqlState(error) ?? '')
}

export function isMissing(error: unknown): boolean {
  return MISSING.includes(sqlState(error) ?? '')
}

/** Whether it came from the server, so that the statement is over. */
export function isAnswer(error: unknown): boolean {
  return sqlState(error) !== null
}

/** The five characters of a server's error, of which one is a digit; null: the error is the driver's own (EPIPE), so there was no answer. */
function sqlState(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : null
}

/** Drivers put statement and values on their errors, and with them what is nobody else's business. */
function bare(error: unknown, message: string): Error {
  const copy = new Error(message)
  if (error instanceof Error && error.stack !== undefined) copy.stack = error.stack
  return copy
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // A failed connection to several addresses of one name has its reasons inside, and no message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ')
  return error.message
}
