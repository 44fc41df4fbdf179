import { aborted, listenToAbort } from '../../../base/abort.js'
import { systemEnv } from '../../../base/env.js'
import { HoldfastError } from '../../../base/errors.js'
import { nothing } from '../../../base/nothing.js'
import type { Lent } from '../driver.js'
import { isBusy, isCollision, isRecordChanged, isSavepointMissing } from '../failures.js'
import { keyOf, toBytes } from '../values.js'

const SAVEPOINT = 'holdfast_run'
/** The server counts waits in whole seconds. */
const SECOND_MS = 1000
const ASK_AGAIN_MS = 20

/** The names of locks are no names of lines: they have a table of their own. */
const SPACE = 'row_lock'

/** How long a caller waits, and whether it still does. */
interface Patience {
  readonly deadline: number
  readonly signal: AbortSignal | undefined
}

/** Somebody else has the lock for longer than was to be waited. */
export class Busy extends Error {}

/**
 * A transaction of the caller's, on one connection. The connection does not commit by itself while it lasts: when the server undoes everything, as it does for a deadlock, and
 * the work goes on as if nothing had happened, what it does then is not kept either. A savepoint at the beginning tells at the end whether it is still the same transaction.
 */
export class Transaction {
  readonly #connection: Lent
  readonly #table: string
  /** A wait of the server that lasts longer than the caller's. */
  #late: Promise<unknown> | undefined

  constructor(connection: Lent, table: string) {
    this.#connection = connection
    this.#table = table
  }

  /** What the caller's work is given: the driver's own connection. */
  get own(): unknown {
    return this.#connection.own
  }

  /** The caller has given up; the server still waits, for less than a second. What it gets is rolled back. */
  get isLate(): boolean {
    return this.#late !== undefined
  }

  /** Begins with the lock, or not at all. */
  async begin(name: string, patience: Patience, isolation: string | undefined): Promise<void> {
    await this.#run('SET @holdfast_autocommit = @@autocommit, autocommit = 0')
    for (;;) {
      if (isolation !== undefined)
        await this.#run(`SET TRANSACTION ISOLATION LEVEL ${isolation.toUpperCase()}`)
      try {
        if ((await this.#lockFirst(name, patience)) !== null) break
        // Not in the same transaction: those who look for it would be kept waiting for its end, and gaps that are locked make deadlocks.
        await this.#run('ROLLBACK')
        await this.#insert('IGNORE', name)
        await this.#run('COMMIT')
      } catch (error) {
        // Nothing of the work is done yet, so it may as well begin again.
        if (!isCollision(error)) throw error
        await this.#run('ROLLBACK')
      }
    }
    await this.#countTurn(name)
    await this.#run(`SAVEPOINT ${SAVEPOINT}`)
  }

  /** Locks another name as well, for a part of the work. */
  async enter(name: string, patience: Patience): Promise<void> {
    const turns = await this.#lockRow(name, patience).catch((error) => {
      throw isRecordChanged(error) ? stale(name) : error
    })
    if (turns === null) return this.#insert('', name)
    // In REPEATABLE READ the work would see what was there before the last one who had the lock.
    const [seen] = await this.#run(`SELECT turns ${this.#from(name)}`)
    if (seen !== turns) throw stale(name)
    await this.#countTurn(name)
  }

  /** A part of the work, which can be undone by itself. */
  async part<T>(depth: number, work: () => Promise<T>): Promise<T> {
    const savepoint = `holdfast_${depth}`
    await this.#run(`SAVEPOINT ${savepoint}`)
    try {
      const result = await work()
      await this.#releaseSavepoint(savepoint)
      return result
    } catch (error) {
      // On a connection that is lost, or in a transaction that is undone, this fails, too; what was first is the news.
      await this.#run(`ROLLBACK TO SAVEPOINT ${savepoint}`).catch(() => {})
      throw error
    }
  }

  async commit(): Promise<void> {
    await this.#releaseSavepoint(SAVEPOINT)
    await this.#run('COMMIT')
  }

  async rollback(): Promise<void> {
    await this.#late
    await this.#run('ROLLBACK')
  }

  /** The connection as it was. */
  async leave(): Promise<void> {
    await this.#run('SET autocommit = @holdfast_autocommit')
  }

  /** How often the lock was taken, as text; null: nobody has ever had it. The server waits to the end: who only asks now and then gets nothing beside those that it has in line. */
  async #lockFirst(name: string, { deadline, signal }: Patience): Promise<string | null> {
    for (;;) {
      const leftMs = deadline - systemEnv.now()
      if (signal?.aborted) throw aborted(name, signal)
      if (leftMs <= 0 || (leftMs === Infinity && !signal)) return this.#lockRow(name, { deadline, signal })
      try {
        // With a signal in pieces: the server ends a wait only when its time is over.
        const seconds = signal ? 1 : Math.ceil(leftMs / SECOND_MS)
        const locking = this.#within(seconds, () => this.#ask(name, ''))
        return await this.#orLate(name, leftMs, signal, locking)
      } catch (error) {
        if (!isBusy(error)) throw error
      }
    }
  }

  #orLate<T>(name: string, ms: number, signal: AbortSignal | undefined, locking: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const leave = (reason: Error): void => {
        this.#late = locking.catch(() => {})
        reject(reason)
      }
      const onAbort = (): void => leave(signal ? aborted(name, signal) : new Busy('busy'))
      const cancel =
        ms === Infinity ? nothing : systemEnv.timer(ms, () => leave(new Busy('busy')), { keepAlive: true })
      const unlisten = signal ? listenToAbort(signal, onAbort) : nothing
      const stop = (): void => {
        cancel()
        unlisten()
      }
      locking.finally(stop).then(resolve, reject)
    })
  }

  /** As above, inside a transaction that goes on: the connection is needed when the wait is over, so what is left of a second is asked for again and again. */
  async #lockRow(name: string, { deadline, signal }: Patience): Promise<string | null> {
    if (deadline === Infinity && !signal) return this.#untilFree(() => this.#ask(name, ''))
    for (;;) {
      const leftMs = deadline - systemEnv.now()
      if (signal?.aborted) throw aborted(name, signal)
      try {
        if (leftMs < SECOND_MS) return await this.#ask(name, 'NOWAIT')
        const seconds = signal ? 1 : Math.floor(leftMs / SECOND_MS)
        return await this.#within(seconds, () => this.#ask(name, ''))
      } catch (error) {
        if (!isBusy(error)) throw error
        if (deadline - systemEnv.now() <= 0) throw new Busy('busy', { cause: error })
        if (leftMs < SECOND_MS) await pause(ASK_AGAIN_MS * systemEnv.random())
      }
    }
  }

  async #ask(name: string, how: '' | 'NOWAIT'): Promise<string | null> {
    return (await this.#run(`SELECT turns ${this.#from(name)} FOR UPDATE ${how}`))[0] ?? null
  }

  /** The server gives up after its own time (innodb_lock_wait_timeout); the caller does not. */
  async #untilFree(ask: () => Promise<string | null>): Promise<string | null> {
    for (;;) {
      try {
        return await ask()
      } catch (error) {
        if (!isBusy(error)) throw error
      }
    }
  }

  async #within<T>(seconds: number, ask: () => Promise<T>): Promise<T> {
    const set = `SET @holdfast_wait = @@innodb_lock_wait_timeout, innodb_lock_wait_timeout = ${Math.min(seconds, 1_000_000)}`
    await this.#run(set)
    try {
      return await ask()
    } finally {
      await this.#run('SET innodb_lock_wait_timeout = @holdfast_wait')
    }
  }

  async #insert(how: 'IGNORE' | '', name: string): Promise<void> {
    const values = `X'${keyOf(SPACE, name)}', ${toBytes(name)}, 1`
    await this.#run(
      `INSERT ${how} INTO ${this.#table} (name_hash, name, turns) VALUES (${values})${how === '' ? ' ON DUPLICATE KEY UPDATE turns = turns + 1' : ''}`,
    )
  }

  async #countTurn(name: string): Promise<void> {
    await this.#run(`UPDATE ${this.#table} SET turns = turns + 1 ${this.#where(name)}`)
  }

  async #releaseSavepoint(savepoint: string): Promise<void> {
    await this.#run(`RELEASE SAVEPOINT ${savepoint}`).catch((error) => {
      throw isSavepointMissing(error) ? undone() : error
    })
  }

  #from(name: string): string {
    return `FROM ${this.#table} ${this.#where(name)}`
  }

  #where(name: string): string {
    return `WHERE name_hash = X'${keyOf(SPACE, name)}'`
  }

  #run(sql: string): Promise<string[]> {
    return this.#connection.query(sql)
  }
}

function stale(resource: string): HoldfastError {
  const message = `'${resource}' was changed by another transaction after this one began to read (REPEATABLE READ), so its work would see what is no longer true; lock it before anything is read, or run with isolation 'read committed'`
  return new HoldfastError('STORE_UNAVAILABLE', message, { resource, store: 'mysql', retryable: true })
}

function undone(): HoldfastError {
  const message =
    'The transaction has ended inside the work, and what was done since is undone: a statement of it met a deadlock, or committed (COMMIT, DDL); let such errors pass, and commit nothing inside'
  return new HoldfastError('STORE_UNAVAILABLE', message, { store: 'mysql', retryable: true })
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    systemEnv.timer(ms, resolve, { keepAlive: true })
  })
}
