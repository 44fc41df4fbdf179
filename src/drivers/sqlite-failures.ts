import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { HoldfastError } from '../base/errors.js'

// SQLite's primary result codes, https://sqlite.org/rescode.html
const BUSY = 5
const LOCKED = 6
const READONLY = 8
const IOERR = 10
const CORRUPT = 11
const FULL = 13
const CANTOPEN = 14
const PROTOCOL = 15
const NOTADB = 26

const BY_NAME: Readonly<Record<string, number>> = {
  BUSY,
  LOCKED,
  READONLY,
  IOERR,
  CORRUPT,
  FULL,
  CANTOPEN,
  PROTOCOL,
  NOTADB,
}

/** The texts of sqlite3_errstr(). */
const BY_TEXT: readonly (readonly [text: string, code: number])[] = [
  ['database is locked', BUSY],
  ['database table is locked', LOCKED],
  ['attempt to write a readonly database', READONLY],
  ['disk I/O error', IOERR],
  ['database disk image is malformed', CORRUPT],
  ['database or disk is full', FULL],
  ['unable to open database file', CANTOPEN],
  ['locking protocol', PROTOCOL],
  ['file is not a database', NOTADB],
]

/**
 * The primary result code of a driver's error; null if it is no SQLite error. Each driver reports
 * it differently.
 */
export function resultCode(error: unknown): number | null {
  if (!(error instanceof Error)) return null
  const { errcode, rawCode, code } = error as { errcode?: unknown; rawCode?: unknown; code?: unknown }
  // The low byte is the primary code; the rest is the detail, such as BUSY_SNAPSHOT or IOERR_WRITE.
  if (typeof errcode === 'number') return errcode & 255
  if (typeof rawCode === 'number' && rawCode !== 0) return rawCode & 255
  const name = typeof code === 'string' ? /^SQLITE_([A-Z]+)/.exec(code)?.[1] : undefined
  if (name !== undefined) return BY_NAME[name] ?? 1
  if (code === 'ERR_SQLITE_ERROR') return byText(error.message)
  return whileOpening(error.message)
}

/** Deno's node:sqlite gives no code for failures of `exec` and of opening. */
function byText(message: string): number {
  return BY_TEXT.find(([text]) => message.startsWith(text))?.[1] ?? 1
}

/** Some drivers give no code when they cannot open the file. */
function whileOpening(message: string): number | null {
  // better-sqlite3
  if (message.startsWith('Cannot open database because')) return CANTOPEN
  // libsql
  const code = /Unable to open connection to local database .*: (\d+)\D*$/s.exec(message)?.[1]
  return code === undefined ? null : Number(code) & 255
}

/** Whether another process has the file right now, so that a retry may succeed. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error)
  return code === BUSY || code === LOCKED || code === PROTOCOL
}

/**
 * Whether the database handle is still usable after this error. It is after our own errors: a
 * process that found the file under another machine's clock must not open it again, which would
 * shift the times back.
 */
export function leavesHandleUsable(error: unknown): boolean {
  return error instanceof HoldfastError || isFull(error)
}

/** Whether the disk has no space left. */
export function isFull(error: unknown): boolean {
  return resultCode(error) === FULL
}

export function busyTooLong(path: string, cause: unknown): HoldfastError {
  const why = `the disk is very slow, or a process is stopped inside a transaction (to find it: lsof ${path})`
  const message = `${path} was in use for too long: ${why}`
  return new HoldfastError('STORE_UNAVAILABLE', message, { store: 'sqlite', cause, retryable: true })
}

export function refused(message: string): HoldfastError {
  return new HoldfastError('INVALID_ARGUMENT', message, { store: 'sqlite' })
}

export function unavailable(message: string, cause?: unknown): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', message, { store: 'sqlite', cause })
}

/** A driver's error as one of ours. Our own errors stay as they are. */
export function explain(error: unknown, path: string): HoldfastError {
  if (error instanceof HoldfastError) return error
  const details = { store: 'sqlite', cause: error }
  const retryable = { ...details, retryable: true }
  switch (resultCode(error)) {
    case CANTOPEN:
      return explainPath(path, error)
    case NOTADB:
      return refused(`${path} is not an SQLite database; give another path, or move that file away`)
    case READONLY:
      return unavailable(
        `${path} is read-only for this process; it must be able to write the file and its folder`,
        error,
      )
    case CORRUPT:
      return unavailable(
        `${path} is damaged; stop all processes that use it, move it and its -wal and -shm files away, start again`,
        error,
      )
    case FULL:
      return new HoldfastError('STORE_UNAVAILABLE', `No space is left for ${path}; free some`, retryable)
    case IOERR:
      return new HoldfastError(
        'STORE_UNAVAILABLE',
        `Reading or writing ${path} failed: ${messageOf(error)}`,
        retryable,
      )
    default:
      return new HoldfastError('STORE_UNAVAILABLE', `SQLite failed on ${path}: ${messageOf(error)}`, details)
  }
}

/** SQLite reports only "cannot open"; the file system has the reason. */
function explainPath(path: string, cause: unknown): HoldfastError {
  const folder = dirname(path)
  if (isFolder(path))
    return refused(`${path} is a folder; give the path of a file in it, such as ${path}/locks.db`)
  if (!isFolder(folder))
    return refused(`The folder ${folder} does not exist; create it first: mkdir -p '${folder}'`)
  if (!isWritable(folder) || (exists(path) && !isWritable(path)))
    return unavailable(
      `This process may not write ${path}; it must be able to write the file and its folder`,
      cause,
    )
  const message = `${path} cannot be opened: ${messageOf(cause)}`
  return new HoldfastError('STORE_UNAVAILABLE', message, { store: 'sqlite', cause, retryable: true })
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    return true
  } catch {
    return false
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
