import type { Driver } from '../driver.js'
import { isSchemaMissing } from '../failures.js'
import type { Runner } from '../runner.js'
import { keyOf, toBytes } from '../values.js'
import { Session } from './session.js'

/** Names of counters are no names of lines. */
const SPACE = 'session_lock'

/** What session locks ask of the server. No name needs quoting. */
export class SessionServer {
  readonly #driver: Driver
  readonly #runner: Runner

  constructor(driver: Driver, runner: Runner) {
    this.#driver = driver
    this.#runner = runner
    runner.use()
  }

  /** Takes a connection out of the pool. */
  async open(onEnd: (reason: unknown) => void): Promise<Session> {
    await this.#makeSchema()
    return new Session(await this.#driver.lend(), onEnd)
  }

  /** The fence of the lock, if it was free; null if it was not. */
  async lock(session: Session, key: string, name: string): Promise<number | null> {
    const routine = this.#runner.names.routine('session_lock')
    const sql = `CALL ${routine}('${key}', X'${keyOf(SPACE, name)}', ${toBytes(name)})`
    const ask = (): Promise<string[]> => session.query(sql)
    const [fence] = await ask().catch(async (error) => {
      if (!isSchemaMissing(error)) throw error
      await this.#makeSchema()
      return ask()
    })
    return fence === undefined || fence === '0' ? null : Number(fence)
  }

  /** Whether it was this session's. */
  async unlock(session: Session, key: string): Promise<boolean> {
    const [isReleased] = await session.query(`SELECT RELEASE_LOCK('${key}')`)
    return isReleased === '1'
  }

  /** Which of these nobody has. */
  async free(session: Session, keys: readonly string[]): Promise<Set<string>> {
    if (keys.length === 0) return new Set()
    const [flags = ''] = await session.query(
      `SELECT CONCAT(${keys.map((key) => `IS_FREE_LOCK('${key}')`).join(', ')})`,
    )
    return new Set(keys.filter((_key, index) => flags[index] === '1'))
  }

  /** A statement that fails where the schema is missing has it made. */
  async #makeSchema(): Promise<void> {
    await this.#runner.query(`SELECT fence FROM ${this.#runner.names.sessionLock} LIMIT 0`)
  }
}
