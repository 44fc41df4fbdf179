import { failuresOf } from '../shared/failures.js'

// Codes and classes of https://www.postgresql.org/docs/current/errcodes-appendix.html

/** The server rolled the transaction back in favour of another one: it can be repeated at once. */
const UNDONE = ['40001', '40P01']
/** A routine, table, type or schema is missing. */
const MISSING = ['42883', '42P01', '3F000', '42704']
/** A prepared statement that this session does not have, or has already. */
const UNPREPARED = ['26000', '42P05']
const READ_ONLY = '25006'
/** Codes, or classes of codes, of failures that pass. */
const TRANSIENT = ['08', '40', '53', '55P03', '57', '58', READ_ONLY, 'XX000']

const ADVICE: Readonly<Record<string, string>> = {
  [READ_ONLY]: 'This PostgreSQL server is read-only: a standby, or set so; connect to the primary',
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

export const { explain, outOfReach, closed } = failuresOf({
  store: 'postgres',
  server: 'PostgreSQL',
  meaningOf(error, message) {
    const code = sqlState(error)
    if (code === null) return null
    const advice = ADVICE[code]
    return {
      text: advice === undefined ? `PostgreSQL failed: ${message}` : `${advice} (${message})`,
      retryable: TRANSIENT.some((each) => code.startsWith(each)),
    }
  },
})

export function isUndone(error: unknown): boolean {
  return UNDONE.includes(sqlState(error) ?? '')
}

/** Whether the lock could not be acquired within `lock_timeout`. */
export function isBusy(error: unknown): boolean {
  return sqlState(error) === '55P03'
}

/** Whether an operator or a time limit has canceled the statement. */
export function isCanceled(error: unknown): boolean {
  return sqlState(error) === '57014'
}

export function isUnprepared(error: unknown): boolean {
  return UNPREPARED.includes(sqlState(error) ?? '')
}

export function isMissing(error: unknown): boolean {
  return MISSING.includes(sqlState(error) ?? '')
}

/**
 * Whether the connection can be used again: the server's own errors leave it usable, unless they
 * are fatal. A server that is read-only may have been the primary before a failover: a new
 * connection may reach the server that is now.
 */
export function isUsableAfter(error: unknown): boolean {
  const { severity } = Object(error) as { severity?: unknown }
  return severity === 'ERROR' && sqlState(error) !== READ_ONLY
}

/** Whether it came from the server, so that the statement is over. */
export function isAnswer(error: unknown): boolean {
  return sqlState(error) !== null
}

/**
 * The server's five characters, of which one is a digit; null: the error is the driver's own
 * (EPIPE), so there was no answer.
 */
function sqlState(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : null
}
