import { type Cancel, systemEnv } from '../../../base/env.js'
import { explain, outOfReach } from '../failures.js'
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
  /** Somebody else has it. */
  refuse(): void
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

  join(waiter: Waiter): void {
    const key = sessionLockName(waiter.name)
    const line = this.#lines.get(key) ?? { name: waiter.name, key, waiters: [], hold: null, isAsking: false }
    if (!waiter.isPatient && (line.hold || line.waiters.length > 0)) return waiter.refuse()
    this.#lines.set(key, line)
    line.waiters.push(waiter)
    this.#movedAt = systemEnv.now()
    void this.#ask(line)
  }

  leave(waiter: Waiter): void {
    const line = this.#lines.get(sessionLockName(waiter.name))
    const index = line?.waiters.indexOf(waiter) ?? -1
    if (!line || index < 0) return
    line.waiters.splice(index, 1)
    this.#tidy(line)
  }

  /** Asks the server for the lock, for the first of those who want it. */
  async #ask(line: Line): Promise<void> {
    if (line.hold || line.isAsking || line.waiters.length === 0) return
    line.isAsking = true
    let session: Session | undefined
    try {
      session = await this.#open()
      const fence = await this.#server.lock(session, line.key, line.name)
      line.isAsking = false
      if (fence !== null) await this.#granted(line, session, fence)
      else for (const waiter of takeHasty(line.waiters)) waiter.refuse()
    } catch (error) {
      line.isAsking = false
      // With a connection that has ended nobody's wait has; another one is asked.
      if (!session?.isOver) for (const waiter of line.waiters.splice(0)) waiter.fail(explain(error))
    }
    this.#tidy(line)
    this.#plan()
  }

  async #granted(line: Line, session: Session, fence: number): Promise<void> {
    this.#movedAt = systemEnv.now()
    // Lost again before anybody has heard of it.
    if (session.isOver) return
    const waiter = line.waiters.shift()
    if (!waiter) return void (await this.#server.unlock(session, line.key))
    const hold: SessionHold = new SessionHold(line.name, fence, () => this.#free(line, session, hold))
    line.hold = hold
    waiter.grant(hold)
  }

  async #free(line: Line, session: Session, hold: SessionHold): Promise<boolean> {
    try {
      return await this.#server.unlock(session, line.key)
    } catch (error) {
      if (session.isOver) return false
      throw explain(error)
    } finally {
      // After a loss it may be another one's by now.
      if (line.hold === hold) line.hold = null
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
    const opening = this.#server.open((reason) => this.#lost(opening, reason))
    this.#session = opening
    opening.catch(() => {
      if (this.#session === opening) this.#session = undefined
    })
    return opening
  }

  /** With the connection go all its locks, whatever they were for. */
  #lost(opening: Promise<Session>, reason: unknown): void {
    if (this.#session === opening) this.#session = undefined
    for (const line of this.#lines.values()) {
      const { hold } = line
      line.hold = null
      hold?.lose(outOfReach(reason instanceof Error ? reason.message : 'the connection has ended', reason))
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

/** Takes those out who do not want to wait. */
function takeHasty(waiters: Waiter[]): Waiter[] {
  const hasty = waiters.filter(({ isPatient }) => !isPatient)
  for (const waiter of hasty) waiters.splice(waiters.indexOf(waiter), 1)
  return hasty
}
