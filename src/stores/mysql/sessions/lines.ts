import { type Cancel, systemEnv } from '../../../base/env.js'
import { outOfReach } from '../failures.js'
import { SessionHold } from './hold.js'
import { sessionLockName } from './names.js'
import type { SessionServer } from './server.js'
import type { Session } from './session.js'

/** While locks are taken and given back: the shortest pause before those that were taken are asked for again … */
const QUICKEST_MS = 5
/** … and while nothing moves: after a quarter of the time for which nothing has, at most so long. */
const PATIENCE = 1 / 4
const SLOWEST_MS = 250

/** Somebody of this process who wants a lock. */
export interface Waiter {
  readonly name: string
  /** false: it is to be had at once or not at all. */
  readonly isPatient: boolean
  grant(hold: SessionHold): void
  fail(error: unknown): void
}

/** Those of this process who want or have one lock. A session may lock what it has locked already: only one of them may ask the server. */
interface Line {
  readonly name: string
  readonly key: string
  readonly waiters: Waiter[]
  hold: SessionHold | null
  isAsking: boolean
}

/**
 * All session locks of one pool. They are on one connection, which is borrowed while there is anybody who has or wants a lock, and never waits inside the server: what
 * is taken is asked for again, one question for all names.
 */
export class SessionLines {
  readonly #server: SessionServer
  readonly #lines = new Map<string, Line>()
  #session: Promise<Session> | undefined
  #movedAt = 0
  #cancelPoll: Cancel | undefined

  constructor(server: SessionServer) {
    this.#server = server
  }

  join(waiter: Waiter, busy: () => Error): void {
    const key = sessionLockName(waiter.name)
    const line = this.#lines.get(key) ?? { name: waiter.name, key, waiters: [], hold: null, isAsking: false }
    if (!waiter.isPatient && (line.hold || line.waiters.length > 0)) return waiter.fail(busy())
    this.#lines.set(key, line)
    line.waiters.push(waiter)
    this.#movedAt = systemEnv.now()
    void this.#ask(line, waiter, busy)
  }

  leave(waiter: Waiter): void {
    const line = this.#lines.get(sessionLockName(waiter.name))
    const index = line?.waiters.indexOf(waiter) ?? -1
    if (!line || index < 0) return
    line.waiters.splice(index, 1)
    this.#tidy(line)
  }

  /** Asks the server for the lock, for the first of those who want it. */
  async #ask(line: Line, asker?: Waiter, busy?: () => Error): Promise<void> {
    if (line.hold || line.isAsking || line.waiters.length === 0) return
    line.isAsking = true
    try {
      const session = await this.#open()
      const fence = await this.#server.lock(session, line.key, line.name)
      line.isAsking = false
      if (fence !== null) await this.#granted(line, session, fence)
      else if (asker && !asker.isPatient && line.waiters.includes(asker)) {
        this.leave(asker)
        asker.fail(busy?.())
      }
    } catch (error) {
      line.isAsking = false
      // Nobody is answered who can be served when the next connection is there; if there is none, that is the answer.
      if (!this.#session)
        for (const waiter of line.waiters.splice(0)) waiter.fail(this.#server.explain(error))
    }
    this.#tidy(line)
    this.#plan()
  }

  async #granted(line: Line, session: Session, fence: number): Promise<void> {
    const waiter = line.waiters.shift()
    this.#movedAt = systemEnv.now()
    if (!waiter || session.isOver) {
      if (waiter) line.waiters.unshift(waiter)
      else await this.#server.unlock(session, line.key)
      return
    }
    const hold = new SessionHold(line.name, fence, () => this.#free(line, session))
    line.hold = hold
    waiter.grant(hold)
  }

  async #free(line: Line, session: Session): Promise<boolean> {
    try {
      return await this.#server.unlock(session, line.key)
    } catch (error) {
      if (session.isOver) return false
      throw this.#server.explain(error)
    } finally {
      line.hold = null
      this.#movedAt = systemEnv.now()
      void this.#ask(line)
      this.#tidy(line)
    }
  }

  /** One question for all that were not to be had. */
  async #poll(): Promise<void> {
    const wanted = [...this.#lines.values()].filter((line) => !line.hold && !line.isAsking)
    try {
      const session = await this.#open()
      const free = await this.#server.free(
        session,
        wanted.map(({ key }) => key),
      )
      await Promise.all(wanted.filter(({ key }) => free.has(key)).map((line) => this.#ask(line)))
    } catch {
      // Whoever asks next hears of it.
      await Promise.all(wanted.map((line) => this.#ask(line)))
    }
    this.#plan()
  }

  #plan(): void {
    const isWanted = [...this.#lines.values()].some((line) => !line.hold && line.waiters.length > 0)
    if (!isWanted || this.#cancelPoll) return
    const restMs = (systemEnv.now() - this.#movedAt) * PATIENCE
    const ms = Math.min(SLOWEST_MS, Math.max(QUICKEST_MS, restMs)) * (0.5 + systemEnv.random())
    const poll = (): void => {
      this.#cancelPoll = undefined
      void this.#poll()
    }
    this.#cancelPoll = systemEnv.timer(ms, poll, { keepAlive: true })
  }

  #open(): Promise<Session> {
    if (this.#session) return this.#session
    const opening = this.#server.open((session, reason) => this.#lost(opening, session, reason))
    this.#session = opening
    opening.catch(() => {
      if (this.#session === opening) this.#session = undefined
    })
    return opening
  }

  /** With the connection go all its locks, whatever they were for. */
  #lost(opening: Promise<Session>, _session: Session, reason: unknown): void {
    if (this.#session === opening) this.#session = undefined
    for (const line of this.#lines.values()) {
      const { hold } = line
      line.hold = null
      hold?.lose(outOfReach(String(reason)))
      void this.#ask(line)
      this.#tidy(line)
    }
  }

  /** What nobody wants is forgotten, and with the last of them the connection is given back. */
  #tidy(line: Line): void {
    if (line.hold || line.isAsking || line.waiters.length > 0) return
    if (this.#lines.get(line.key) === line) this.#lines.delete(line.key)
    if (this.#lines.size > 0) return
    this.#cancelPoll?.()
    this.#cancelPoll = undefined
    const session = this.#session
    this.#session = undefined
    void session?.then((each) => each.giveBack()).catch(() => {})
  }
}
