import { statSync } from 'node:fs'
import type { Env } from '../../base/env.js'
import { decodeText } from '../../base/text.js'
import type { Finding } from '../../contract/store.js'
import { type Database, inTransaction } from '../../drivers/sqlite.js'
import { unavailable } from '../../drivers/sqlite-failures.js'
import { EmbeddedLines } from '../embedded/lines.js'
import { EmbeddedStates } from '../embedded/states.js'
import { checkFile } from './check.js'
import { checkEra } from './clock.js'
import { presentEra, settleEra } from './era.js'
import { type Message, Outbox } from './outbox.js'
import { SqliteRows } from './rows.js'
import { prepareFile } from './schema.js'
import { prepareStatements, type Statements } from './statements.js'

/** What everything inside one transaction shares. */
export interface Transaction {
  /** One moment for the whole transaction. It is later than the sending of every call in it. */
  now: number
  /** The last number given out; written back at the end. */
  counter: number
  hasPins: boolean
  hasChanged: boolean
}

/** The lines and states of one space. */
export interface Space {
  readonly rows: SqliteRows
  readonly lines: EmbeddedLines
  readonly states: EmbeddedStates
}

export interface FileOptions {
  readonly path: string
  readonly env: Env
  readonly bootId: string | null
  /** Whether other processes can tell our clients. */
  receivesPushes(): boolean
}

/** An opened file: transactions, and what can be done inside one. */
export class LockFile {
  readonly sql: Statements
  readonly #outbox = new Outbox()
  readonly transaction: Transaction = { now: 0, counter: 0, hasPins: false, hasChanged: false }
  readonly #database: Database
  readonly #boot: string
  readonly #options: FileOptions
  readonly #identity: string | undefined
  readonly #spaces = new Map<string, Space>()

  /** Makes the file ready. Throws the driver's BUSY when it is not our turn. */
  constructor(database: Database, options: FileOptions) {
    this.#database = database
    this.#options = options
    const { path, env, bootId } = options
    const settle = (isNew: boolean): string => settleEra(database, isNew, env, bootId)
    this.#boot = prepareFile(database, path, settle, () => presentEra(database, env, bootId))
    this.#identity = identityOf(options.path)
    this.sql = prepareStatements(database)
  }

  /** Runs `work` in a transaction that may write. Gives what is to be told now that it is durable. */
  change(work: () => void): Message[] {
    inTransaction(this.#database, 'BEGIN IMMEDIATE', () => {
      this.#begin()
      work()
      // A refused claim changes nothing, and then nothing is written.
      if (!this.transaction.hasChanged) return
      this.sql.saveHead.run(this.transaction.counter, this.transaction.now)
    })
    return this.#outbox.take()
  }

  /** Runs `work` on one consistent view of the file, without keeping anybody from writing. */
  look(work: () => void): void {
    inTransaction(this.#database, 'BEGIN', () => {
      this.#begin()
      work()
    })
  }

  space(name: string): Space {
    const known = this.#spaces.get(name)
    if (known) return known
    const space = this.#makeSpace(name)
    this.#spaces.set(name, space)
    return space
  }

  /** Whether the path leads to another file by now, or to none: then other processes use another one than we do. */
  isReplaced(): boolean {
    const identity = identityOf(this.#options.path)
    return identity !== undefined && identity !== this.#identity
  }

  /** Another number whenever another process has changed the file. */
  version(): number {
    return Number(this.sql.version.get()?.['data_version'])
  }

  /** The names of the spaces in which there are claims. */
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
    checkEra({ boot: String(head['boot']), seen: Number(head['seen']) }, this.#boot, transaction.now)
    transaction.counter = Number(head['counter'])
    transaction.hasPins = Number(head['has_pins']) > 0
    transaction.hasChanged = false
    this.#outbox.begin()
  }

  #makeSpace(name: string): Space {
    const rows = new SqliteRows(name, this.sql, this.transaction)
    const now = (): number => this.transaction.now
    const lines = new EmbeddedLines(rows, {
      now,
      wallMs: () => this.#options.env.wallMs(),
      tell: (client, news) => this.#outbox.tell(name, client, news),
      receivesPushes: () => this.#options.receivesPushes(),
    })
    const states = new EmbeddedStates(rows, {
      now,
      nextVersion: () => lines.nextNumber(0, 1),
      tell: (client, news) => this.#outbox.tell(name, client, news),
    })
    return { rows, lines, states }
  }
}

/** '' if there is no such file; undefined if that cannot be told. */
function identityOf(path: string): string | undefined {
  try {
    const stat = statSync(path, { throwIfNoEntry: false })
    return stat ? `${stat.dev}:${stat.ino}` : ''
  } catch {
    return undefined
  }
}
