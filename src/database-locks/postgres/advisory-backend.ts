import type { Env } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'
import type { PostgresDriver } from '../../stores/postgres/driver.js'
import { explain, isBusy, isCanceled, isMissing, outOfReach } from '../../stores/postgres/failures.js'
import { Installation } from '../../stores/postgres/install.js'
import type { PgPool } from '../../stores/postgres/pg.js'
import { inSchema } from '../../stores/postgres/schema.js'
import type { SessionBackend, SessionLockId } from '../sessions/backend.js'
import { DatabaseSession } from '../sessions/session.js'
import { PgSessionConnection } from './session-connection.js'

const PING_EVERY_MS = 2000
const SILENT_AFTER_MS = 10_000

/** CASE fixes the order: the timeout, which ends with the statement, is set before the wait. */
const WAIT = `SELECT CASE WHEN set_config('lock_timeout', $2, true) IS NOT NULL THEN pg_advisory_lock($1)::text END || pg_backend_pid()`
/** In a transaction of its own: one that has waited sees an old counter in REPEATABLE READ. */
const COUNT = `INSERT INTO holdfast.advisory_fence AS f VALUES ($1, holdfast.clock(NULL))
  ON CONFLICT (key) DO UPDATE SET last = greatest(f.last + 1, excluded.last)
  RETURNING jsonb_build_object('pid', pg_backend_pid(), 'fences', jsonb_build_object(f.key::text, f.last))::text`
/** Cancels the process only while it waits for this lock. */
const CANCEL = `SELECT pg_cancel_backend(pid)::text FROM pg_locks
  WHERE pid = $1 AND NOT granted AND locktype = 'advisory' AND objsubid = 1 AND (classid::bigint << 32) | objid::bigint = $2`

type PgSession = DatabaseSession<PgSessionConnection>

interface CountedFences {
  readonly pid: number
  readonly fences: Readonly<Record<string, number>>
}

/** Advisory locks of PostgreSQL (`pg_advisory_lock`). */
export class AdvisoryBackend implements SessionBackend<PgSessionConnection> {
  readonly store = 'postgres'
  readonly explain = explain
  readonly #pool: PgPool
  readonly #driver: PostgresDriver
  readonly #schema: string
  readonly #env: Env
  readonly #installation: Installation

  constructor(pool: PgPool, driver: PostgresDriver, schema: string, env: Env) {
    this.#pool = pool
    this.#driver = driver
    this.#schema = schema
    this.#env = env
    this.#installation = new Installation(schema)
  }

  poolSize(): number {
    return this.#pool.options?.max ?? 0
  }

  async open(onEnd: (reason: HoldfastError) => void): Promise<PgSession> {
    await this.#installation.ensure(this.#driver)
    const connection = new PgSessionConnection(await this.#pool.connect())
    const settings = { env: this.#env, pingEveryMs: PING_EVERY_MS, silentAfterMs: SILENT_AFTER_MS, onEnd }
    return new DatabaseSession(connection, settings)
  }

  async tryAll(session: PgSession, locks: readonly SessionLockId[]): Promise<ReadonlyMap<string, number>> {
    const keys = locks.map(({ key }) => key)
    const fences = await this.#count(session, 'SELECT holdfast.try_advisory($1)', `{${keys.join(',')}}`)
    return new Map(Object.entries(fences))
  }

  async wait(session: PgSession, { key }: SessionLockId, ms: number): Promise<number | null> {
    if (session.connection.pid === undefined)
      checkProcess(
        session,
        await session.run((connection) => connection.ask('SELECT pg_backend_pid()::text')),
      )
    try {
      checkProcess(session, await session.run((connection) => connection.ask(WAIT, [key, String(ms)]), ms))
      return (await this.#count(session, COUNT, key))[key] ?? null
    } catch (error) {
      // The lock may have been granted all the same: it outlives a statement that fails.
      await session
        .run((connection) => connection.ask('SELECT pg_advisory_unlock_all()'))
        .catch((reason) => session.destroy(explain(reason)))
      if (isBusy(error) || isCanceled(error)) return null
      throw error
    }
  }

  async cancel(waiting: PgSession, { key }: SessionLockId, by: PgSession): Promise<void> {
    const { pid } = waiting.connection
    if (pid !== undefined) await by.run((connection) => connection.ask(CANCEL, [String(pid), key]))
  }

  async unlock(session: PgSession, key: string): Promise<boolean> {
    const answer = await session.run((connection) =>
      connection.ask('SELECT pg_advisory_unlock($1)::text', [key]),
    )
    // The lock was taken in another session.
    if (answer !== 'true') session.destroy(behindPooler())
    return answer === 'true'
  }

  isTransient(error: unknown): boolean {
    return explain(error).retryable || isMissing(error)
  }

  async #count(session: PgSession, sql: string, value: string): Promise<CountedFences['fences']> {
    const ask = () => session.run((connection) => connection.ask(inSchema(sql, this.#schema), [value]))
    const { pid, fences } = JSON.parse((await this.#withSchema(session, ask)) ?? '') as CountedFences
    checkProcess(session, String(pid))
    if (session.hasEnded) throw outOfReach('the connection has ended')
    return fences
  }

  /** Creates the schema again if it was dropped, by this session: the pool may have no other. */
  async #withSchema<T>(session: PgSession, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      if (!isMissing(error)) throw error
      this.#installation.forget()
      await this.#installation.ensure({
        ask: (text, values) => session.run((connection) => connection.ask(text, values)),
        run: (text) => session.run((connection) => connection.script(text)),
      })
      return ask()
    }
  }
}

function checkProcess(session: PgSession, pid: string | null): void {
  if (session.connection.isProcess(Number(pid))) return
  const error = behindPooler()
  session.destroy(error)
  throw error
}

function behindPooler(): HoldfastError {
  return new HoldfastError(
    'UNSUPPORTED',
    'Advisory locks belong to a session, and this pooler sends each statement to another one: connect to the server itself, or use session pooling',
    { store: 'postgres' },
  )
}
