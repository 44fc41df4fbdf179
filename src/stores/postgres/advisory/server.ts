import type { Env } from '../../../base/env.js'
import { HoldfastError } from '../../../base/errors.js'
import type { Lock, LockServer } from '../../../drivers/session-locks/server.js'
import type { Driver } from '../driver.js'
import { explain, isBusy, isCanceled, isMissing, outOfReach } from '../failures.js'
import { Installation } from '../install.js'
import type { PgPool } from '../pg.js'
import { inSchema } from '../schema.js'
import { Session } from './session.js'

interface Answer {
  readonly pid: number
  readonly fences: Readonly<Record<string, number>>
}

/** CASE keeps the order: the time-out, which ends with the statement, comes before the wait. */
const WAIT = `SELECT CASE WHEN set_config('lock_timeout', $2, true) IS NOT NULL THEN pg_advisory_lock($1)::text END || pg_backend_pid()`
/** In a transaction of its own: one that has waited would see an old counter in REPEATABLE READ. */
const COUNT = `INSERT INTO holdfast.advisory_fence AS f VALUES ($1, holdfast.clock(NULL))
  ON CONFLICT (key) DO UPDATE SET last = greatest(f.last + 1, excluded.last)
  RETURNING jsonb_build_object('pid', pg_backend_pid(), 'fences', jsonb_build_object(f.key::text, f.last))::text`
/** Only while it waits for this lock. */
const CANCEL = `SELECT pg_cancel_backend(pid)::text FROM pg_locks
  WHERE pid = $1 AND NOT granted AND locktype = 'advisory' AND objsubid = 1 AND (classid::bigint << 32) | objid::bigint = $2`

/** What advisory locks ask of the server. */
export class AdvisoryServer implements LockServer<Session> {
  readonly #pool: PgPool
  readonly #driver: Driver
  readonly #schema: string
  readonly #env: Env
  readonly #installation: Installation

  constructor(pool: PgPool, driver: Driver, schema: string, env: Env) {
    this.#pool = pool
    this.#driver = driver
    this.#schema = schema
    this.#env = env
    this.#installation = new Installation(schema)
  }

  poolSize(): number {
    return this.#pool.options?.max ?? 0
  }

  async open(onEnd: (reason: Error) => void): Promise<Session> {
    await this.#installation.ensure(this.#driver)
    return Session.open(this.#pool, this.#env, onEnd)
  }

  async tryAll(session: Session, locks: readonly Lock[]): Promise<ReadonlyMap<string, number>> {
    const keys = locks.map(({ key }) => key)
    const fences = await this.#count(session, 'SELECT holdfast.try_advisory($1)', `{${keys.join(',')}}`)
    return new Map(Object.entries(fences))
  }

  async wait(session: Session, { key }: Lock, ms: number): Promise<number | null> {
    if (session.pid === undefined)
      checkProcess(session, await session.ask('SELECT pg_backend_pid()::text', []))
    try {
      checkProcess(session, await session.ask(WAIT, [key, String(ms)], ms))
      return (await this.#count(session, COUNT, key))[key] ?? null
    } catch (error) {
      // It may have come all the same: a lock of a session outlives a statement that fails.
      await session
        .ask('SELECT pg_advisory_unlock_all()', [])
        .catch((reason) => session.destroy(explain(reason)))
      if (isBusy(error) || isCanceled(error)) return null
      throw error
    }
  }

  async cancel({ pid }: Session, { key }: Lock, by: Session): Promise<void> {
    if (pid !== undefined) await by.ask(CANCEL, [String(pid), key])
  }

  async unlock(session: Session, key: string): Promise<boolean> {
    const answer = await session.ask('SELECT pg_advisory_unlock($1)::text', [key])
    // A session that has not got what it was given is not the same any more.
    if (answer !== 'true') session.destroy(behindPooler())
    return answer === 'true'
  }

  probe(session: Session): Promise<unknown> {
    return session.ask('SELECT 1', [])
  }

  explain(error: unknown): HoldfastError {
    return explain(error)
  }

  mayPass(error: unknown): boolean {
    return explain(error).retryable || isMissing(error)
  }

  async #count(session: Session, sql: string, value: string): Promise<Answer['fences']> {
    try {
      const answer = await session.ask(inSchema(sql, this.#schema), [value])
      const { pid, fences } = JSON.parse(answer ?? '') as Answer
      checkProcess(session, String(pid))
      if (session.isOver) throw outOfReach('its session has ended')
      return fences
    } catch (error) {
      if (isMissing(error)) this.#installation.forget()
      throw error
    }
  }
}

function checkProcess(session: Session, pid: string | null): void {
  if (session.isProcess(Number(pid))) return
  const error = behindPooler()
  session.destroy(error)
  throw error
}

function behindPooler(): HoldfastError {
  return new HoldfastError(
    'UNSUPPORTED',
    'Advisory locks belong to a session, and here each statement may come to another one: connect past the pooler, or let it pool by session',
    { store: 'postgres' },
  )
}
