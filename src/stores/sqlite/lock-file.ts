import { statSync } from 'node:fs'
import type { Env } from '../../base/env.js'
import { quietly } from '../../base/quietly.js'
import { decodeText } from '../../base/text.js'
import type { Finding } from '../../contract/store.js'
import { inTransaction, type SqliteDatabase } from '../../drivers/sqlite.js'
import { isFull, unavailable } from '../../drivers/sqlite-failures.js'
import { EmbeddedLines } from '../embedded/lines.js'
import { EmbeddedStates } from '../embedded/states.js'
import { checkFile } from './check.js'
import { checkClock } from './clock.js'
import { currentBoot, moveToCurrentBoot } from './file-clock.js'
import { type Message, Outbox } from './outbox.js'
import { SqliteRows } from './rows.js'
import { prepareFile } from './schema.js'
import { prepareStatements, type SqliteStatements } from './statements.js'

/** What the calls inside one transaction share. */
export interface SqliteTransaction {
  /** One time for the whole transaction, later than the sending of every call in it. */
  now: number
  /** The last number given out; written to the file at the end. */
  counter: number
  hasPins: boolean
  hasChanged: boolean
}

/** The lines and states of one space. */
export interface SqliteSpace {
  readonly rows: SqliteRows
  readonly lines: EmbeddedLines
  readonly states: EmbeddedStates
}

export interface LockFileOptions {
  readonly path: string
  readonly env: Env
  readonly bootId: string | null
  /** Whether other processes can reach our clients. */
  receivesPushes(): boolean
}

/** An open file, its transactions, and the spaces in it. */
export class LockFile {
  readonly sql: SqliteStatements
  readonly #outbox = new Outbox()
  readonly transaction: SqliteTransaction = { now: 0, counter: 0, hasPins: false, hasChanged: false }
  readonly #database: SqliteDatabase
  readonly #boot: string
  readonly #options: LockFileOptions
  readonly #identity: string | undefined
  readonly #spaces = new Map<string, SqliteSpace>()

  /** Prepares the file. Throws the driver's BUSY while another process has it. */
  constructor(database: SqliteDatabase, options: LockFileOptions) {
    this.#database = database
    this.#options = options
    const { path, env, bootId } = options
    const prepare = (isNew: boolean): string => moveToCurrentBoot(database, isNew, env, bootId)
    this.#boot = prepareFile(database, path, prepare, () => currentBoot(database, env, bootId))
    this.#identity = identityOf(options.path)
    this.sql = prepareStatements(database)
  }

  /**
   * Runs `work` in a transaction that may write. Returns the pushes to send now that it is durable.
   */
  write(work: () => void): Message[] {
    try {
      inTransaction(this.#database, 'BEGIN IMMEDIATE', () => {
        this.#begin()
        work()
        // Nothing is written for a refused claim, which changes nothing.
        if (!this.transaction.hasChanged) return
        this.sql.saveHead.run(this.transaction.counter, this.transaction.now)
      })
    } catch (error) {
      if (isFull(error)) this.#emptyLog()
      throw error
    }
    return this.#outbox.take()
  }

  /**
   * SQLite moves its log into the file after a commit only. Where the log itself has filled the
   * disk, no commit would ever succeed again.
   */
  #emptyLog(): void {
    quietly(() => this.#database.exec('PRAGMA wal_checkpoint(PASSIVE)'))
  }

  /** Runs `work` on one snapshot of the file. Does not block writers. */
  read(work: () => void): void {
    inTransaction(this.#database, 'BEGIN', () => {
      this.#begin()
      work()
    })
  }

  space(name: string): SqliteSpace {
    const known = this.#spaces.get(name)
    if (known) return known
    const space = this.#makeSpace(name)
    this.#spaces.set(name, space)
    return space
  }

  /** Whether the path leads to another file now, or to none: other processes left this one. */
  isReplaced(): boolean {
    const identity = identityOf(this.#options.path)
    return identity !== undefined && identity !== this.#identity
  }

  /** Changes whenever another process has changed the file. */
  version(): number {
    return Number(this.sql.version.get()?.['data_version'])
  }

  /** The spaces that have claims. */
  spaces(): string[] {
    return this.sql.spaces.all().map((cells) => decodeText(String(cells['space'])))
  }

  check(): Finding[] {
    return checkFile(this.#database, this.#options.path)
  }

  close(): void {
    this.#database.close()
  }

  #begin(): void {
    const { transaction } = this
    const head = this.sql.loadHead.get()
    if (!head) throw unavailable(`${this.#options.path} has lost its first row; move it away and start again`)
    transaction.now = this.#options.env.now()
    checkClock({ boot: String(head['boot']), seen: Number(head['seen']) }, this.#boot, transaction.now)
    transaction.counter = Number(head['counter'])
    transaction.hasPins = Number(head['has_pins']) > 0
    transaction.hasChanged = false
    this.#outbox.clear()
  }

  #makeSpace(name: string): SqliteSpace {
    const rows = new SqliteRows(name, this.sql, this.transaction)
    const now = (): number => this.transaction.now
    const lines = new EmbeddedLines(rows, {
      now,
      wallMs: () => this.#options.env.wallMs(),
      tell: (client, news) => this.#outbox.add(name, client, news),
      receivesPushes: () => this.#options.receivesPushes(),
    })
    const states = new EmbeddedStates(rows, {
      now,
      nextVersion: () => lines.nextNumber(0, 1),
      tell: (client, news) => this.#outbox.add(name, client, news),
    })
    return { rows, lines, states }
  }
}

/** '' if there is no such file; undefined if the system does not say. */
function identityOf(path: string): string | undefined {
  try {
    const stat = statSync(path, { throwIfNoEntry: false })
    return stat ? `${stat.dev}:${stat.ino}` : ''
  } catch {
    return undefined
  }
}
