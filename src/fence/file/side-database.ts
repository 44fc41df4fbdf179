import { dirname, relative } from 'node:path'
import { backoffMs } from '../../base/backoff.js'
import { systemEnv } from '../../base/env.js'
import { attempt, loadDriver, type SqliteDatabase } from '../../drivers/sqlite.js'
import { busyTooLong, explain, isBusy, resultCode } from '../../drivers/sqlite-failures.js'
import { type Fenced, fenceOf } from '../fenced.js'
import { nameKey } from '../names.js'
import { runNow } from '../sql/clients.js'
import { sqliteDialect } from '../sql/dialect.js'
import { planRowFence, type StatementResult } from '../sql/plans.js'
import { type GuardStatement, raiseStatement, tableStatement } from '../sql/statements.js'

/** Not the table of `sqliteGuard`: its keys are resources, these are files. */
const TABLE = 'holdfast_file_fence'
/**
 * The fence must be on disk before its data: a power cut must not leave new data under an old
 * fence.
 */
const BEGIN = 'PRAGMA synchronous = FULL; BEGIN IMMEDIATE'
const FIRST_RETRY_MS = 1
const MOST_RETRY_MS = 32

/** The newest fences of files, in a small database of their own. */
export class SideDatabase {
  readonly #path: string
  readonly #database: SqliteDatabase

  private constructor(path: string, database: SqliteDatabase) {
    this.#path = path
    this.#database = database
  }

  static async open(path: string): Promise<SideDatabase> {
    const driver = await loadDriver()
    try {
      return new SideDatabase(path, driver.open(path))
    } catch (error) {
      throw explain(error, path)
    }
  }

  close(): void {
    this.#database.close()
  }

  /**
   * Runs `write` while no other writer can, if `hold` has the newest fence of `file`; otherwise
   * throws STALE_FENCE.
   *
   * It takes two transactions. The first records the fence; the second finds it unchanged, and
   * writes before it ends. With a single one, a process killed between the write and the COMMIT
   * would leave new data without a record of its fence, and a stale writer with a fence in between
   * would pass. A second write under the same fence needs the second transaction only.
   */
  async write(hold: Fenced | number, file: string, waitMs: number, write: () => void): Promise<void> {
    const key = nameKey(relative(dirname(this.#path), file))
    const giveUpAt = systemEnv.now() + waitMs
    for (let attempt = 1; ; attempt += 1) {
      try {
        if (this.#recordOrWrite(hold, key, write) === 'written') return
        continue
      } catch (error) {
        if (!isBusy(error)) throw resultCode(error) === null ? error : explain(error, this.#path)
        if (systemEnv.now() >= giveUpAt) throw busyTooLong(this.#path, error)
      }
      // Another writer has the file. SQLite's own busy timeout would block the event loop.
      const ms = backoffMs(attempt, systemEnv.random(), FIRST_RETRY_MS, MOST_RETRY_MS)
      await new Promise<void>((resolve) => systemEnv.timer(ms, resolve, { keepAlive: true }))
    }
  }

  #recordOrWrite(hold: Fenced | number, key: string, write: () => void): 'recorded' | 'written' {
    const fence = fenceOf(hold)
    const row = { table: TABLE, where: { resource: key } }
    this.#database.exec(BEGIN)
    try {
      this.#run(tableStatement(sqliteDialect, TABLE))
      const newest = runNow(planRowFence(sqliteDialect, hold, row), (statement) => this.#run(statement))
      if (newest === fence) {
        write()
        return 'written'
      }
      this.#run(raiseStatement(sqliteDialect, TABLE, key, fence))
      this.#database.exec('COMMIT')
      return 'recorded'
    } finally {
      // After a write there is nothing to commit, and a COMMIT could fail while others read the
      // file.
      attempt(() => this.#database.exec('ROLLBACK'))
    }
  }

  #run({ sql, values, isRead }: GuardStatement): StatementResult {
    const prepared = this.#database.prepare(sql)
    const given = values as (string | number)[]
    return isRead
      ? { rows: prepared.all(...given), changes: 0 }
      : { rows: [], changes: prepared.run(...given) }
  }
}
