import { HoldfastError } from '../../base/errors.js'
import { inTransaction, type SqliteDatabase } from '../../drivers/sqlite.js'
import { refused } from '../../drivers/sqlite-failures.js'

/** "Hfst" in ASCII: marks the file as ours. We never write to other databases. */
const APPLICATION_ID = 0x48667374
/** Raised with every change of the tables that older versions cannot work with. */
const SCHEMA_VERSION = 1

/** docs/stores/sqlite.md explains the tables and columns. */
const TABLES = `
CREATE TABLE holdfast (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  counter INTEGER NOT NULL,
  boot TEXT NOT NULL,
  seen REAL NOT NULL
);
CREATE TABLE claim (
  space TEXT NOT NULL,
  resource TEXT NOT NULL,
  place INTEGER NOT NULL,
  id TEXT NOT NULL,
  client TEXT NOT NULL,
  permits INTEGER NOT NULL,
  capacity INTEGER NOT NULL,
  fence INTEGER,
  expires REAL NOT NULL,
  max_hold_ms REAL,
  floor INTEGER NOT NULL,
  block INTEGER NOT NULL,
  since REAL NOT NULL,
  info TEXT NOT NULL,
  PRIMARY KEY (space, resource, place)
) WITHOUT ROWID;
CREATE UNIQUE INDEX claim_id ON claim (space, resource, id);
CREATE TABLE pin (
  space TEXT NOT NULL,
  resource TEXT NOT NULL,
  declared INTEGER NOT NULL,
  capacity INTEGER NOT NULL,
  PRIMARY KEY (space, resource)
) WITHOUT ROWID;
CREATE TABLE state (
  space TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  version INTEGER NOT NULL,
  expires REAL,
  PRIMARY KEY (space, key)
) WITHOUT ROWID;
CREATE INDEX state_end ON state (expires) WHERE expires IS NOT NULL;
CREATE TABLE watcher (
  space TEXT NOT NULL,
  key TEXT NOT NULL,
  client TEXT NOT NULL,
  seen REAL NOT NULL,
  PRIMARY KEY (space, key, client)
) WITHOUT ROWID;
PRAGMA application_id = ${APPLICATION_ID};
PRAGMA user_version = ${SCHEMA_VERSION};
`

/**
 * Prepares the file: WAL mode, and our tables if it is empty. Processes that start together each
 * find nothing or everything, because the tables, the version and `fill` are one transaction.
 * Throws the driver's BUSY while another process has the file. If `find` returns a value, the file
 * is ready, and there is no need to wait for writers.
 */
export function prepareFile<T>(
  database: SqliteDatabase,
  path: string,
  fill: (isNew: boolean) => T,
  find: () => T | undefined = () => undefined,
): T {
  // Inspected before any change: another application's database keeps its journal mode.
  // In one snapshot, because another process may be creating the tables right now.
  inTransaction(database, 'BEGIN', () => inspectFile(database, path))
  const mode = database.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode']
  if (mode !== 'wal') throw noSharedMemory(path)
  // NORMAL: a power cut may undo the last changes, but it also ends every process that relied on
  // them. The size limit frees the space of a burst at the next checkpoint.
  database.exec('PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 4194304; PRAGMA busy_timeout = 0')
  const found = inTransaction(database, 'BEGIN', () =>
    inspectFile(database, path) === 'ours' ? find() : undefined,
  )
  if (found !== undefined) return found
  return inTransaction(database, 'BEGIN IMMEDIATE', () => {
    const isNew = inspectFile(database, path) === 'empty'
    if (isNew) database.exec(TABLES)
    return fill(isNew)
  })
}

function inspectFile(database: SqliteDatabase, path: string): 'empty' | 'ours' {
  const pragma = (name: string): unknown => database.prepare(`PRAGMA ${name}`).get()?.[name]
  const application = pragma('application_id')
  const version = pragma('user_version')
  if (application === APPLICATION_ID) {
    if (Number(version) > SCHEMA_VERSION) throw tooNew(path, Number(version))
    return 'ours'
  }
  const hasTables = database.prepare('SELECT 1 FROM sqlite_master LIMIT 1').get() !== undefined
  if (application !== 0 || version !== 0 || hasTables)
    throw refused(`${path} is the database of another application; give Holdfast a file of its own`)
  return 'empty'
}

function tooNew(path: string, version: number): HoldfastError {
  const message = `${path} was written by a newer Holdfast (schema ${version}, this one knows ${SCHEMA_VERSION}); update this one`
  return new HoldfastError('UNSUPPORTED', message, { store: 'sqlite' })
}

function noSharedMemory(path: string): HoldfastError {
  const message = `The file system of ${path} cannot share memory between processes, which SQLite's WAL needs; use a local disk`
  return new HoldfastError('UNSUPPORTED', message, { store: 'sqlite' })
}
