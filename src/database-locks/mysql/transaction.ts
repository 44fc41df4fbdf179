import type { Env } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'
import type { Lent } from '../../stores/mysql/driver.js'
import { isCollision, isRecordChanged, isSavepointMissing } from '../../stores/mysql/failures.js'
import type { LockTransaction, LockWait } from '../transactions/backend.js'
import type { Isolation } from '../transactions/options.js'
import { MysqlRowLocks } from './row-lock.js'

/** Set when the work begins. If it is gone at the end, the transaction is no longer the same. */
const WORK_SAVEPOINT = 'holdfast_run'

/**
 * A transaction on one connection, with autocommit off. After a deadlock the server rolls
 * everything back, and the work may go on unaware of it: without autocommit, what it does then is
 * not committed either.
 */
export class MysqlTransaction implements LockTransaction {
  readonly #connection: Lent
  readonly #isolation: Isolation | undefined
  readonly #rows: MysqlRowLocks

  constructor(connection: Lent, table: string, isolation: Isolation | undefined, env: Env) {
    this.#connection = connection
    this.#isolation = isolation
    this.#rows = new MysqlRowLocks(connection, table, env)
  }

  get client(): unknown {
    return this.#connection.own
  }

  /** Whether the server still waits for a lock that the caller has given up. */
  get isWaiting(): boolean {
    return this.#rows.unfinished !== undefined
  }

  async begin(): Promise<void> {
    await this.#run('SET @holdfast_autocommit = @@autocommit, autocommit = 0')
  }

  /** The first lock of the transaction: nothing was done before it, so it can begin again. */
  async lock(name: string, wait: LockWait): Promise<void> {
    for (;;) {
      if (this.#isolation !== undefined)
        await this.#run(`SET TRANSACTION ISOLATION LEVEL ${this.#isolation.toUpperCase()}`)
      try {
        if ((await this.#rows.lockFirst(name, wait)) !== null) break
        // In a transaction of its own: others that look for the row would wait for the end of this
        // one, and locked gaps make deadlocks.
        await this.#run('ROLLBACK')
        await this.#rows.add(name)
        await this.#run('COMMIT')
      } catch (error) {
        if (!isCollision(error)) throw error
        await this.#run('ROLLBACK')
      }
    }
    await this.#rows.countTurn(name)
    await this.#run(`SAVEPOINT ${WORK_SAVEPOINT}`)
  }

  part<T>(work: (inner: LockTransaction) => Promise<T>): Promise<T> {
    return this.#part(1, work)
  }

  async commit(): Promise<void> {
    await this.#releaseSavepoint(WORK_SAVEPOINT)
    await this.#run('COMMIT')
  }

  async rollback(): Promise<void> {
    await this.#rows.unfinished
    await this.#run('ROLLBACK')
  }

  /** Restores the settings of the connection. */
  async end(): Promise<void> {
    await this.#run('SET autocommit = @holdfast_autocommit')
  }

  async #part<T>(depth: number, work: (inner: LockTransaction) => Promise<T>): Promise<T> {
    const savepoint = `holdfast_${depth}`
    const inner: LockTransaction = {
      client: this.client,
      lock: (name, wait) => this.#lockNested(name, wait),
      part: (nested) => this.#part(depth + 1, nested),
    }
    await this.#run(`SAVEPOINT ${savepoint}`)
    try {
      const result = await work(inner)
      await this.#releaseSavepoint(savepoint)
      return result
    } catch (error) {
      // On a lost connection, or after a deadlock, this fails as well; the first error tells more.
      await this.#run(`ROLLBACK TO SAVEPOINT ${savepoint}`).catch(() => {})
      throw error
    }
  }

  async #lockNested(name: string, wait: LockWait): Promise<void> {
    const turns = await this.#rows.lock(name, wait).catch((error) => {
      throw isRecordChanged(error) ? stale(name) : error
    })
    if (turns === null) return this.#rows.addOrCountTurn(name)
    // In REPEATABLE READ the work would not see what the last holder of this lock has done.
    if ((await this.#rows.visibleTurns(name)) !== turns) throw stale(name)
    await this.#rows.countTurn(name)
  }

  async #releaseSavepoint(savepoint: string): Promise<void> {
    await this.#run(`RELEASE SAVEPOINT ${savepoint}`).catch((error) => {
      throw isSavepointMissing(error) ? endedInside() : error
    })
  }

  #run(sql: string): Promise<string[]> {
    return this.#connection.query(sql)
  }
}

function stale(resource: string): HoldfastError {
  const message = `'${resource}' was changed by another transaction after this one began to read (REPEATABLE READ), so the work would read old data; lock it before the first read, or run with isolation 'read committed'`
  return new HoldfastError('STORE_UNAVAILABLE', message, { resource, store: 'mysql', retryable: true })
}

function endedInside(): HoldfastError {
  const message =
    'The transaction ended inside the work, and what the work did after that is rolled back: one of its statements met a deadlock, or committed (COMMIT, DDL); let such errors pass, and commit nothing inside'
  return new HoldfastError('STORE_UNAVAILABLE', message, { store: 'mysql', retryable: true })
}
