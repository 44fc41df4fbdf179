import type { Cancel, Env } from '../../../base/env.js'
import { HoldfastError } from '../../../base/errors.js'
import type { Driver } from '../driver.js'
import { explain, isMissing, outOfReach } from '../failures.js'
import { Installation } from '../install.js'
import type { PgPool } from '../pg.js'
import { inSchema } from '../schema.js'
import { Door, type Waiter } from './door.js'
import { Session } from './session.js'

/** A server that is out of reach is tried again for so long. */
const FAIL_AFTER_MS = 10_000

interface Answer {
  readonly pid: number
  readonly fences: Readonly<Record<string, number>>
}

/**
 * Asks the server for all the locks that are wanted here, in one session and one question at a time, and never waits inside one: a session that
 * waits for a lock can do nothing else, not even give another one back.
 */
export class Desk {
  readonly #pool: PgPool
  readonly #driver: Driver
  readonly #schema: string
  readonly #env: Env
  readonly #installation: Installation
  readonly #doors = new Map<string, Door>()
  #session: Promise<Session> | undefined
  #isAsking = false
  #cancelTimer: Cancel = () => {}

  constructor(pool: PgPool, driver: Driver, schema: string, env: Env) {
    this.#pool = pool
    this.#driver = driver
    this.#schema = schema
    this.#env = env
    this.#installation = new Installation(schema)
  }

  /** The door of a key; while anybody is at it, the same one. */
  doorOf(key: string): Door {
    const door = this.#doors.get(key) ?? new Door(key)
    this.#doors.set(key, door)
    return door
  }

  join(door: Door, waiter: Waiter): void {
    door.waiters.push(waiter)
    this.goOn()
  }

  /** Says whether the lock was still there. */
  async release(door: Door): Promise<boolean> {
    const { hold } = door
    try {
      const session = await this.#session
      const answer = await session?.ask('SELECT pg_advisory_unlock($1)::text', [door.key])
      // A session that has not got what it was given is not the same any more.
      if (answer === 'false') session?.destroy(behindPooler())
      return answer === 'true'
    } catch {
      // The session has ended, and the lock with it.
      return false
    } finally {
      if (door.hold === hold) door.open(this.#env)
      this.goOn()
    }
  }

  /** Something has changed: asks now, or later, or gives the session back. */
  goOn(): void {
    this.#cancelTimer()
    if (this.#isAsking) return
    for (const door of this.#doors.values()) if (door.isDeserted) this.#doors.delete(door.key)
    if (this.#doors.size === 0) return this.#closeSession()
    const wanted = [...this.#doors.values()].filter((door) => door.isWanted)
    if (wanted.length === 0) return
    const now = this.#env.now()
    const due = wanted.filter((door) => door.dueAt <= now)
    if (due.length > 0) void this.#ask(due)
    else {
      const dueAt = Math.min(...wanted.map((door) => door.dueAt))
      this.#cancelTimer = this.#env.timer(dueAt - now, () => this.goOn(), { keepAlive: true })
    }
  }

  /** Never rejects. */
  async #ask(due: readonly Door[]): Promise<void> {
    this.#isAsking = true
    try {
      const fences = await this.#tryAll(due)
      for (const door of due) this.#settle(door, fences[door.key])
    } catch (error) {
      for (const door of due) this.#fail(door, error)
    }
    this.#isAsking = false
    this.goOn()
  }

  async #tryAll(due: readonly Door[]): Promise<Answer['fences']> {
    await this.#installation.ensure(this.#driver)
    const opening = this.#openSession()
    const session = await opening
    const sql = inSchema('SELECT holdfast.try_advisory($1)', this.#schema)
    const keys = due.map(({ key }) => key)
    const { pid, fences } = JSON.parse((await session.ask(sql, [`{${keys.join(',')}}`])) ?? '') as Answer
    if (!session.isProcess(pid)) {
      const error = behindPooler()
      session.destroy(error)
      throw error
    }
    if (this.#session !== opening) throw outOfReach('its session has ended')
    return fences
  }

  #settle(door: Door, fence: number | undefined): void {
    door.failure = null
    const [first] = door.waiters
    if (fence !== undefined && first) {
      door.hold = first.enter(fence)
      return
    }
    door.postpone(this.#env)
    // Those that wanted it have gone meanwhile.
    if (fence !== undefined) void this.release(door)
    else for (const waiter of [...door.waiters]) if (waiter.isBrief) waiter.leave()
  }

  /** What may pass is tried again for a while, for those who have time. */
  #fail(door: Door, cause: unknown): void {
    const now = this.#env.now()
    const error = explain(cause)
    const since = door.failure?.since ?? now
    if (isMissing(cause)) this.#installation.forget()
    const mayPass = (error.retryable || isMissing(cause)) && now - since < FAIL_AFTER_MS
    door.failure = mayPass ? { since, error } : null
    door.postpone(this.#env)
    for (const waiter of [...door.waiters]) if (!mayPass || waiter.isBrief) waiter.fail(error)
  }

  #openSession(): Promise<Session> {
    if (this.#session) return this.#session
    const session = Session.open(this.#pool, this.#env, (reason) => this.#onLoss(session, reason))
    this.#session = session
    session.catch(() => this.#forget(session))
    return session
  }

  #onLoss(session: Promise<Session>, reason: Error): void {
    if (!this.#forget(session)) return
    for (const door of this.#doors.values()) {
      const { hold } = door
      if (hold === null) continue
      door.open(this.#env)
      hold.lose(reason)
    }
    this.goOn()
  }

  #forget(session: Promise<Session>): boolean {
    if (this.#session !== session) return false
    this.#session = undefined
    return true
  }

  #closeSession(): void {
    const session = this.#session
    if (!session) return
    this.#forget(session)
    session.then((each) => each.close()).catch(() => {})
  }
}

function behindPooler(): HoldfastError {
  return new HoldfastError(
    'UNSUPPORTED',
    'Advisory locks belong to a session, and here each statement may come to another one: connect past the pooler, or let it pool by session',
    { store: 'postgres' },
  )
}
