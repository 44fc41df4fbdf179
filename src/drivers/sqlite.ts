import { HoldfastError } from '../base/errors.js'
import { firstLine, type Loader } from './packages.js'

export type DriverName = 'node:sqlite' | 'libsql' | 'better-sqlite3'

/** What a column can hold here. Blobs and integers beyond 2^53 are never stored. */
export type Value = string | number | null
export type Cells = Readonly<Record<string, Value>>

export interface Statement {
  /** Says how many rows changed. */
  run(...values: Value[]): number
  get(...values: Value[]): Cells | undefined
  all(...values: Value[]): Cells[]
}

/** The part of SQLite that is used here. There is no lazy cursor: one that is left half read would pin an old snapshot. */
export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

export interface Driver {
  readonly name: DriverName
  open(path: string): Database
}

interface ForeignStatement {
  run(...values: Value[]): { changes: number | bigint }
  get(...values: Value[]): unknown
  all(...values: Value[]): unknown[]
}

/** What the drivers have in common, told structurally, so that none of them is needed to compile. */
interface ForeignDatabase {
  exec(sql: string): unknown
  prepare(sql: string): ForeignStatement
  close(): unknown
}

type DatabaseClass = new (path: string, options?: { timeout: number }) => ForeignDatabase

/** In the order in which they are looked for. */
const LOADERS: Readonly<Record<DriverName, Loader>> = {
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

/** Loads the named driver, or the first that can be had: the one of Node itself, else what is installed. */
export async function loadDriver(wanted?: DriverName): Promise<Driver> {
  const failures: string[] = []
  for (const name of wanted === undefined ? (Object.keys(LOADERS) as DriverName[]) : [wanted]) {
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

/** Runs `work` in a transaction of its own; if it throws, nothing of it has happened. */
export function inTransaction<T>(database: Database, begin: string, work: () => T): T {
  database.exec(begin)
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (error) {
    // After some failures SQLite has rolled back by itself, and says that there is nothing to undo.
    attempt(() => database.exec('ROLLBACK'))
    throw error
  }
}

/** Runs `work`; not being able to is fine. */
export function attempt(work: () => void): void {
  try {
    work()
  } catch {
    // Not being able to is fine where this is used.
  }
}

async function databaseClass(name: DriverName): Promise<DatabaseClass> {
  const loaded = await LOADERS[name]()
  if ('error' in loaded) throw loaded.error
  const module = loaded.module as { default?: DatabaseClass; DatabaseSync?: DatabaseClass }
  const found = name === 'node:sqlite' ? module.DatabaseSync : module.default
  if (!found) throw new Error('has no database class')
  // better-sqlite3 loads its native part only now, and it may have been built for another Node.
  new found(':memory:').close()
  return found
}

function adapt(name: DriverName, Found: DatabaseClass): Driver {
  return {
    name,
    open(path) {
      // Never SQLite's own waiting: it blocks the event loop, and starves some of several processes.
      const database = new Found(path, { timeout: 0 })
      return {
        exec: (sql) => void database.exec(sql),
        prepare: (sql) => adaptStatement(database.prepare(sql)),
        close() {
          // libsql closes only once its statements are garbage; until then the file should be complete without the -wal file.
          if (name === 'libsql') attempt(() => database.exec('PRAGMA wal_checkpoint(TRUNCATE)'))
          database.close()
        },
      }
    },
  }
}

function adaptStatement(statement: ForeignStatement): Statement {
  return {
    run: (...values) => Number(statement.run(...values).changes),
    get: (...values) => statement.get(...values) as Cells | undefined,
    all: (...values) => statement.all(...values) as Cells[],
  }
}
