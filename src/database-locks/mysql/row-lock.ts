import { aborted } from '../../base/abort.js'
import type { Env } from '../../base/env.js'
import type { Lent } from '../../stores/mysql/driver.js'
import { isBusy } from '../../stores/mysql/failures.js'
import { keyOf, toBytes } from '../../stores/mysql/values.js'
import type { LockWait } from '../transactions/backend.js'

/** The server counts lock waits in whole seconds. */
const SECOND_MS = 1000
const MOST_SECONDS = 1_000_000
const POLL_MS = 20

/** Keeps the keys of this table apart from those of the store's tables. */
const SPACE = 'row_lock'

/** Another transaction held the lock until the deadline. */
export class RowLockBusy extends Error {}

/** The rows that transactions lock, as one connection sees them. */
export class MysqlRowLocks {
  readonly #connection: Lent
  readonly #table: string
  readonly #env: Env
  #unfinished: Promise<unknown> | undefined

  constructor(connection: Lent, table: string, env: Env) {
    this.#connection = connection
    this.#table = table
    this.#env = env
  }

  /** A wait in the server, of less than a second, that its caller no longer waits for. */
  get unfinished(): Promise<unknown> | undefined {
    return this.#unfinished
  }

  /**
   * Locks the row and resolves with its number of turns; null: there is no such row. The server
   * waits for the whole time: a transaction that polls gets nothing beside others that wait there.
   */
  async lockFirst(name: string, { deadline, signal }: LockWait): Promise<string | null> {
    for (;;) {
      const leftMs = deadline - this.#env.now()
      if (signal?.aborted) throw aborted(name, signal)
      if (leftMs <= 0 || (leftMs === Infinity && !signal)) return this.lock(name, { deadline, signal })
      try {
        // With a signal in pieces: the server ends a wait only at its timeout.
        const seconds = signal ? 1 : Math.ceil(leftMs / SECOND_MS)
        return await this.#within(leftMs, this.#lockForSeconds(name, seconds))
      } catch (error) {
        if (!isBusy(error)) throw error
      }
    }
  }

  /**
   * The same inside a transaction that goes on. It needs the connection back at the deadline, so it
   * polls in the last second.
   */
  async lock(name: string, { deadline, signal }: LockWait): Promise<string | null> {
    for (;;) {
      const leftMs = deadline - this.#env.now()
      if (signal?.aborted) throw aborted(name, signal)
      try {
        if (leftMs === Infinity && !signal) return await this.#lockRow(name)
        if (leftMs < SECOND_MS) return await this.#lockRow(name, 'NOWAIT')
        return await this.#lockForSeconds(name, signal ? 1 : Math.floor(leftMs / SECOND_MS))
      } catch (error) {
        if (!isBusy(error)) throw error
        if (deadline <= this.#env.now()) throw new RowLockBusy('busy', { cause: error })
        if (leftMs < SECOND_MS) await this.#pause(POLL_MS * this.#env.random())
      }
    }
  }

  /** The turns that the transaction sees without a lock. */
  async visibleTurns(name: string): Promise<string | undefined> {
    return (await this.#connection.query(`SELECT turns ${this.#from(name)}`))[0]
  }

  async countTurn(name: string): Promise<void> {
    await this.#connection.query(`UPDATE ${this.#table} SET turns = turns + 1 ${this.#where(name)}`)
  }

  /** Adds the row, unless another transaction has. */
  async add(name: string): Promise<void> {
    await this.#connection.query(`INSERT IGNORE INTO ${this.#row(name)}`)
  }

  /** Adds the row and locks it, or counts a turn if it is there. */
  async addOrCountTurn(name: string): Promise<void> {
    await this.#connection.query(`INSERT INTO ${this.#row(name)} ON DUPLICATE KEY UPDATE turns = turns + 1`)
  }

  async #lockRow(name: string, how: '' | 'NOWAIT' = ''): Promise<string | null> {
    return (await this.#connection.query(`SELECT turns ${this.#from(name)} FOR UPDATE ${how}`))[0] ?? null
  }

  async #lockForSeconds(name: string, seconds: number): Promise<string | null> {
    const limit = Math.min(seconds, MOST_SECONDS)
    await this.#connection.query(
      `SET @holdfast_wait = @@innodb_lock_wait_timeout, innodb_lock_wait_timeout = ${limit}`,
    )
    try {
      return await this.#lockRow(name)
    } finally {
      await this.#connection.query('SET innodb_lock_wait_timeout = @holdfast_wait')
    }
  }

  /** Rejects at the deadline, although the server goes on waiting until its next whole second. */
  #within<T>(ms: number, locking: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const onLate = (): void => {
        this.#unfinished = locking.catch(() => {})
        reject(new RowLockBusy('busy'))
      }
      const cancel = this.#env.timer(ms, onLate, { keepAlive: true })
      locking.finally(cancel).then(resolve, reject)
    })
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#env.timer(ms, resolve, { keepAlive: true })
    })
  }

  #row(name: string): string {
    return `${this.#table} (name_hash, name, turns) VALUES (X'${keyOf(SPACE, name)}', ${toBytes(name)}, 1)`
  }

  #from(name: string): string {
    return `FROM ${this.#table} ${this.#where(name)}`
  }

  #where(name: string): string {
    return `WHERE name_hash = X'${keyOf(SPACE, name)}'`
  }
}
