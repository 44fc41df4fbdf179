import { systemEnv } from '../../../base/env.js'
import type { HoldfastError } from '../../../base/errors.js'
import type { Lock, LockServer } from '../../../drivers/session-locks/server.js'
import type { Driver } from '../driver.js'
import { explain, isInterrupted, isSchemaMissing } from '../failures.js'
import type { Runner } from '../runner.js'
import { countSessionLock } from '../sql/session-lock.js'
import { keyOf, toBytes } from '../values.js'
import { Session } from './session.js'

/** Names of counters are no names of lines. */
const SPACE = 'session_lock'

/** What session locks ask of the server. No name needs quoting. */
export class SessionServer implements LockServer<Session> {
  readonly #driver: Driver
  readonly #runner: Runner
  /** By it a wait is found among the statements of the server. */
  readonly #marks = new WeakMap<Session, string>()
  #hasSchema: Promise<void> | undefined

  constructor(driver: Driver, runner: Runner) {
    this.#driver = driver
    this.#runner = runner
    runner.use()
  }

  poolSize(): number {
    return this.#driver.size()
  }

  async open(onEnd: (reason: Error) => void): Promise<Session> {
    this.#hasSchema ??= this.#makeSchema()
    await this.#hasSchema.catch((error) => {
      this.#hasSchema = undefined
      throw error
    })
    return new Session(await this.#driver.lend(), onEnd)
  }

  async tryAll(session: Session, locks: readonly Lock[]): Promise<ReadonlyMap<string, number>> {
    const free = locks.length > 1 ? await this.#free(session, locks) : locks
    const fences = new Map<string, number>()
    try {
      for (const lock of free) {
        const fence = await this.#withSchema(() => this.#try(session, lock))
        if (fence > 0) fences.set(lock.key, fence)
      }
      return fences
    } catch (error) {
      for (const key of fences.keys()) await this.#makeFree(session, key)
      throw error
    }
  }

  async wait(session: Session, lock: Lock, ms: number): Promise<number | null> {
    const mark = systemEnv.id()
    this.#marks.set(session, mark)
    const sql = `SELECT GET_LOCK('${lock.key}', ${Math.ceil(ms / 1000)}) /* ${mark} */`
    try {
      const [isLocked] = await session.query(sql, ms)
      if (isLocked === '0') return null
      if (isLocked === '1') return await this.#withSchema(() => this.#count(session, lock))
    } catch (error) {
      await this.#makeFree(session, lock.key)
      if (isInterrupted(error)) return null
      throw error
    }
    // NULL: the wait was interrupted.
    await this.#makeFree(session, lock.key)
    return null
  }

  /** The number of a connection is the server's: one that a proxy has told may be another's. */
  async cancel(waiting: Session, _lock: Lock, by: Session): Promise<void> {
    const mark = this.#marks.get(waiting)
    const [id] = await by.query(
      `SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT GET_LOCK(%/* ${mark} */'`,
    )
    if (id !== undefined) await by.change(`KILL QUERY ${Number(id)}`)
  }

  async unlock(session: Session, key: string): Promise<boolean> {
    const [isReleased] = await session.query(`SELECT RELEASE_LOCK('${key}')`)
    return isReleased === '1'
  }

  probe(session: Session): Promise<unknown> {
    return session.query('SELECT 1')
  }

  explain(error: unknown): HoldfastError {
    return explain(error)
  }

  /** With a connection that has ended nobody's wait has: another one is asked. */
  mayPass(_error: unknown, session: Session | undefined): boolean {
    return session?.isOver ?? false
  }

  /** Those that nobody has: one question for all. */
  async #free(session: Session, locks: readonly Lock[]): Promise<Lock[]> {
    const tests = locks.map(({ key }) => `IS_FREE_LOCK('${key}')`)
    const [flags = ''] = await session.query(`SELECT CONCAT(${tests.join(', ')})`)
    return locks.filter((_lock, index) => flags[index] === '1')
  }

  /** 0: another session has it. */
  async #try(session: Session, { key, name }: Lock): Promise<number> {
    const routine = this.#runner.names.routine('session_lock')
    const [fence] = await session.query(`CALL ${routine}('${key}', ${counterOf(name)})`)
    return Number(fence ?? 0)
  }

  async #count(session: Session, { name }: Lock): Promise<number> {
    const { id } = await session.change(countSessionLock(this.#runner.names, counterOf(name)))
    return id
  }

  /** Nobody holds it: what cannot be given back ends with its session. */
  async #makeFree(session: Session, key: string): Promise<void> {
    await this.unlock(session, key).catch((reason) => session.destroy(explain(reason)))
  }

  async #withSchema<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      if (!isSchemaMissing(error)) throw error
      await this.#makeSchema()
      return ask()
    }
  }

  /** A statement that fails where the schema is missing has it made. */
  async #makeSchema(): Promise<void> {
    await this.#runner.query(`SELECT fence FROM ${this.#runner.names.sessionLock} LIMIT 0`)
  }
}

/** Where it is counted, as the routine takes it. */
function counterOf(name: string): string {
  return `X'${keyOf(SPACE, name)}', ${toBytes(name)}`
}
