import type { Env } from '../../base/env.js'
import type { HoldfastError } from '../../base/errors.js'
import type { MysqlDriver } from '../../stores/mysql/driver.js'
import { explain, isInterrupted, isSchemaMissing } from '../../stores/mysql/failures.js'
import type { MysqlNames } from '../../stores/mysql/sql/names.js'
import { countSessionLock } from '../../stores/mysql/sql/session-lock.js'
import { keyOf, toBytes } from '../../stores/mysql/values.js'
import type { SessionBackend, SessionLockId } from '../sessions/backend.js'
import { DatabaseSession } from '../sessions/session.js'
import { MysqlSessionConnection } from './session-connection.js'
import { MysqlLockTable } from './table.js'

const PING_EVERY_MS = 5000
const SILENT_AFTER_MS = 15_000
/** How much longer than another statement one that creates the schema may take. */
const CREATE_MS = 15_000

/** Keeps the keys of this table apart from those of the store's tables. */
const SPACE = 'session_lock'

type MysqlSession = DatabaseSession<MysqlSessionConnection>

/** Session locks of MySQL and MariaDB (`GET_LOCK`). Their keys need no quoting. */
export class MysqlSessionBackend implements SessionBackend<MysqlSessionConnection> {
  readonly store = 'mysql'
  readonly explain = explain
  readonly #driver: MysqlDriver
  readonly #names: MysqlNames
  readonly #table: MysqlLockTable
  readonly #env: Env

  constructor(driver: MysqlDriver, names: MysqlNames, createSchema: boolean, env: Env) {
    this.#driver = driver
    this.#names = names
    this.#table = new MysqlLockTable(driver, names, createSchema, names.sessionLock, 'fence')
    this.#env = env
  }

  poolSize(): number {
    return this.#driver.size()
  }

  async open(onEnd: (reason: HoldfastError) => void): Promise<MysqlSession> {
    await this.#table.ensure()
    const connection = new MysqlSessionConnection(await this.#driver.lend())
    const settings = { env: this.#env, pingEveryMs: PING_EVERY_MS, silentAfterMs: SILENT_AFTER_MS, onEnd }
    return new DatabaseSession(connection, settings)
  }

  async tryAll(session: MysqlSession, locks: readonly SessionLockId[]): Promise<ReadonlyMap<string, number>> {
    const free = locks.length > 1 ? await this.#free(session, locks) : locks
    const fences = new Map<string, number>()
    const tried: string[] = []
    try {
      for (const lock of free) {
        tried.push(lock.key)
        const fence = await this.#withSchema(session, () => this.#try(session, lock))
        if (fence > 0) fences.set(lock.key, fence)
      }
      return fences
    } catch (error) {
      // Also the one that failed: a routine that is interrupted keeps its lock.
      for (const key of tried) await this.#unlockOrDestroy(session, key)
      throw error
    }
  }

  async wait(session: MysqlSession, lock: SessionLockId, ms: number): Promise<number | null> {
    const mark = this.#env.id()
    session.connection.waitMark = mark
    const sql = `SELECT GET_LOCK('${lock.key}', ${Math.ceil(ms / 1000)}) /* ${mark} */`
    try {
      const [isLocked] = await session.run((connection) => connection.query(sql), ms)
      if (isLocked === '0') return null
      if (isLocked === '1') return await this.#withSchema(session, () => this.#count(session, lock))
    } catch (error) {
      await this.#unlockOrDestroy(session, lock.key)
      if (isInterrupted(error)) return null
      throw error
    }
    // GET_LOCK answers NULL when it is interrupted.
    await this.#unlockOrDestroy(session, lock.key)
    return null
  }

  /** Finds the connection by the mark: an ID told by a proxy may be that of another client. */
  async cancel({ connection: waiting }: MysqlSession, _lock: SessionLockId, by: MysqlSession): Promise<void> {
    const where = `info LIKE 'SELECT GET_LOCK(%/* ${waiting.waitMark} */'`
    const [id] = await by.run((connection) =>
      connection.query(`SELECT id FROM information_schema.processlist WHERE ${where}`),
    )
    if (id !== undefined) await by.run((connection) => connection.change(`KILL QUERY ${Number(id)}`))
  }

  async unlock(session: MysqlSession, key: string): Promise<boolean> {
    const [isReleased] = await session.run((connection) => connection.query(`SELECT RELEASE_LOCK('${key}')`))
    return isReleased === '1'
  }

  /** Only the end of a connection: another one may answer. */
  isTransient(_error: unknown, session: MysqlSession | undefined): boolean {
    return session?.hasEnded ?? false
  }

  /** Those of the locks that no session holds, by one statement. */
  async #free(session: MysqlSession, locks: readonly SessionLockId[]): Promise<SessionLockId[]> {
    const tests = locks.map(({ key }) => `IS_FREE_LOCK('${key}')`)
    const [flags = ''] = await session.run((connection) =>
      connection.query(`SELECT CONCAT(${tests.join(', ')})`),
    )
    return locks.filter((_lock, index) => flags[index] === '1')
  }

  /** Resolves with 0 if another session holds the lock. */
  async #try(session: MysqlSession, { key, name }: SessionLockId): Promise<number> {
    const routine = this.#names.routine('session_lock')
    const sql = `CALL ${routine}('${key}', ${counterOf(name)})`
    const [fence] = await session.run((connection) => connection.query(sql))
    return Number(fence ?? 0)
  }

  async #count(session: MysqlSession, { name }: SessionLockId): Promise<number> {
    const sql = countSessionLock(this.#names, counterOf(name))
    return (await session.run((connection) => connection.change(sql))).id
  }

  async #unlockOrDestroy(session: MysqlSession, key: string): Promise<void> {
    await this.unlock(session, key).catch((reason) => session.destroy(explain(reason)))
  }

  async #withSchema<T>(session: MysqlSession, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      if (!isSchemaMissing(error) || !this.#table.isOurs) throw error
      const query = (sql: string) => session.run((connection) => connection.query(sql), CREATE_MS)
      await this.#table.createBy({ query })
      return ask()
    }
  }
}

/** The hash and the name of a counter, as SQL. */
function counterOf(name: string): string {
  return `X'${keyOf(SPACE, name)}', ${toBytes(name)}`
}
