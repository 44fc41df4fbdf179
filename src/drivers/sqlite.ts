import { HoldfastError } from '../base/errors.js'
import { firstLine, type Loader } from './packages.js'

export type SqliteDriverName = 'node:sqlite' | 'libsql' | 'better-sqlite3'

/** The values of a column. Blobs and integers above 2^53 are never stored. */
export type SqliteValue = string | number | null
export type Cells = Readonly<Record<string, SqliteValue>>

export interface SqliteStatement {
  /** Returns how many rows changed. */
  run(...values: SqliteValue[]): number
  get(...values: SqliteValue[]): Cells | undefined
  all(...values: SqliteValue[]): Cells[]
}

/**
 * The part of SQLite that we use. It has no lazy cursor: one left half read would pin an old
 * snapshot.
 */
export interface SqliteDatabase {
  exec(sql: string): void
  prepare(sql: string): SqliteStatement
  close(): void
}

export interface SqliteDriver {
  readonly name: SqliteDriverName
  open(path: string): SqliteDatabase
}

interface ForeignStatement {
  run(...values: SqliteValue[]): { changes: number | bigint }
  get(...values: SqliteValue[]): unknown
  all(...values: SqliteValue[]): unknown[]
}

/** What the drivers have in common. Structural, so that none of them is needed to compile. */
interface ForeignDatabase {
  exec(sql: string): unknown
  prepare(sql: string): ForeignStatement
  close(): unknown
}

type DatabaseClass = new (path: string, options?: { timeout: number }) => ForeignDatabase

/** In order of preference. */
const LOADERS: Readonly<Record<SqliteDriverName, Loader>> = {
  'node:sqlite': async () => {
    try {
      return { module: await import('node:sqlite') }
    } catch (error) {
      return { error }
    }
  },
  'better-sqlite3': async () => {
    try {
      return { module: await import('better-sqlite3') }
    } catch (error) {
      return { error }
    }
  },
  libsql: async () => {
    try {
      return { module: await import('libsql') }
    } catch (error) {
      return { error }
    }
  },
}

/** Loads the named driver, or the first that is available: Node's own, else an installed one. */
export async function loadDriver(wanted?: SqliteDriverName): Promise<SqliteDriver> {
  const failures: string[] = []
  for (const name of wanted === undefined ? (Object.keys(LOADERS) as SqliteDriverName[]) : [wanted]) {
    try {
      return adapt(name, await databaseClass(name))
    } catch (error) {
      failures.push(`${name}: ${firstLine(error)}`)
    }
  }
  const advice =
    wanted === 'node:sqlite' ? 'use Node 22.13 or later' : `run: npm install ${wanted ?? 'libsql'}`
  throw new HoldfastError('UNSUPPORTED', `No SQLite driver; ${advice} (${failures.join('; ')})`, {
    store: 'sqlite',
  })
}

/** Runs `work` in a transaction. If it throws, the transaction is rolled back. */
export function inTransaction<T>(database: SqliteDatabase, begin: string, work: () => T): T {
  database.exec(begin)
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (error) {
    // Fails where SQLite has rolled back by itself.
    attempt(() => database.exec('ROLLBACK'))
    throw error
  }
}

/** Runs `work` and ignores its failure. */
export function attempt(work: () => void): void {
  try {
    work()
  } catch {
    // The callers do not depend on it.
  }
}

async function databaseClass(name: SqliteDriverName): Promise<DatabaseClass> {
  const loaded = await LOADERS[name]()
  if ('error' in loaded) throw loaded.error
  const module = loaded.module as { default?: DatabaseClass; DatabaseSync?: DatabaseClass }
  const found = name === 'node:sqlite' ? module.DatabaseSync : module.default
  if (!found) throw new Error('has no database class')
  // better-sqlite3 loads its native part only here; it may be built for another version of Node.
  new found(':memory:').close()
  return found
}

function adapt(name: SqliteDriverName, Found: DatabaseClass): SqliteDriver {
  return {
    name,
    open(path) {
      // SQLite's own busy timeout blocks the event loop, and lets some processes starve.
      const database = new Found(path, { timeout: 0 })
      return {
        exec: (sql) => void database.exec(sql),
        prepare: (sql) => adaptStatement(database.prepare(sql)),
        close() {
          // libsql closes a handle only when it is garbage collected. The file must be complete
          // without its -wal before.
          if (name === 'libsql') attempt(() => database.exec('PRAGMA wal_checkpoint(TRUNCATE)'))
          database.close()
        },
      }
    },
  }
}

function adaptStatement(statement: ForeignStatement): SqliteStatement {
  return {
    run: (...values) => Number(statement.run(...values).changes),
    get: (...values) => statement.get(...values) as Cells | undefined,
    all: (...values) => statement.all(...values) as Cells[],
  }
}
